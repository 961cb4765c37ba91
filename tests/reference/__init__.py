"""What every query of the corpus measures, costs and answers, recorded once and reproduced since."""
