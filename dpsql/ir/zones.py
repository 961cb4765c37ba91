"""The time zones that a statement may name: UTC, and those that are named after a place.

Short names (BST, IST, PST) mean different zones to PostgreSQL and to engines. The offsets are those
since 1970. They bound a range of instants in local time. The engine converts the rows.
"""

from __future__ import annotations

from types import MappingProxyType

_OFFSETS: dict[tuple[int, int], str] = {
    (-720, -720): "Etc/GMT+12",
    (-720, 720): "Pacific/Kwajalein",
    (-720, 780): "Pacific/Enderbury Pacific/Kanton",
    (-660, -660): "Etc/GMT+11 Pacific/Midway Pacific/Niue Pacific/Pago_Pago Pacific/Samoa US/Samoa",
    (-660, -540): "America/Adak America/Atka US/Aleutian",
    (-660, -480): "America/Nome",
    (-660, 780): "Pacific/Fakaofo",
    (-660, 840): "Pacific/Apia",
    (-640, 840): "Pacific/Kiritimati",
    (-630, -570): "Pacific/Rarotonga",
    (-600, -600): "Etc/GMT+10 Pacific/Honolulu Pacific/Johnston Pacific/Tahiti US/Hawaii",
    (-600, -480): "America/Anchorage US/Alaska",
    (-570, -570): "Pacific/Marquesas",
    (-540, -540): "Etc/GMT+9 Pacific/Gambier",
    (-540, -480): "America/Yakutat",
    (-540, -420): "America/Dawson America/Juneau America/Metlakatla America/Sitka",
    (-510, -480): "Pacific/Pitcairn",
    (-480, -480): "Etc/GMT+8",
    (-480, -420): (
        "America/Dawson_Creek America/Ensenada America/Fort_Nelson America/Los_Angeles "
        "America/Santa_Isabel America/Tijuana America/Vancouver America/Whitehorse "
        "Canada/Pacific Canada/Yukon Mexico/BajaNorte US/Pacific US/Pacific-New"
    ),
    (-480, -360): "America/Inuvik",
    (-420, -420): "America/Creston America/Phoenix Etc/GMT+7 US/Arizona",
    (-420, -360): (
        "America/Boise America/Denver America/Edmonton America/Hermosillo America/Mazatlan "
        "America/Shiprock America/Swift_Current America/Yellowknife Canada/Mountain "
        "Mexico/BajaSur US/Mountain"
    ),
    (-420, -300): (
        "America/Bahia_Banderas America/Cambridge_Bay America/Chihuahua America/Ciudad_Juarez "
        "America/North_Dakota/Beulah America/North_Dakota/Center "
        "America/North_Dakota/New_Salem America/Ojinaga Chile/EasterIsland Pacific/Easter"
    ),
    (-360, -360): "America/Regina Canada/East-Saskatchewan Canada/Saskatchewan Etc/GMT+6",
    (-360, -300): (
        "America/Belize America/Chicago America/Costa_Rica America/El_Salvador "
        "America/Guatemala America/Indiana/Knox America/Knox_IN America/Managua "
        "America/Matamoros America/Menominee America/Merida America/Mexico_City "
        "America/Monterrey America/Rainy_River America/Rankin_Inlet America/Resolute "
        "America/Tegucigalpa America/Winnipeg Canada/Central Mexico/General Pacific/Galapagos "
        "US/Central US/Indiana-Starke"
    ),
    (-360, -240): (
        "America/Cancun America/Indiana/Petersburg America/Indiana/Tell_City "
        "America/Indiana/Vincennes America/Indiana/Winamac America/Iqaluit "
        "America/Kentucky/Monticello America/Pangnirtung"
    ),
    (-300, -300): "America/Atikokan America/Cayman America/Coral_Harbour America/Panama Etc/GMT+5",
    (-300, -240): (
        "America/Bogota America/Detroit America/Eirunepe America/Fort_Wayne "
        "America/Grand_Turk America/Guayaquil America/Havana America/Indiana/Indianapolis "
        "America/Indiana/Marengo America/Indiana/Vevay America/Indianapolis America/Jamaica "
        "America/Kentucky/Louisville America/Lima America/Louisville America/Montreal "
        "America/Nassau America/New_York America/Nipigon America/Port-au-Prince "
        "America/Porto_Acre America/Rio_Branco America/Santo_Domingo America/Thunder_Bay "
        "America/Toronto Brazil/Acre Canada/Eastern US/East-Indiana US/Eastern US/Michigan"
    ),
    (-270, -240): "America/Caracas",
    (-240, -240): (
        "America/Anguilla America/Antigua America/Aruba America/Blanc-Sablon America/Curacao "
        "America/Dominica America/Grenada America/Guadeloupe America/Kralendijk "
        "America/La_Paz America/Lower_Princes America/Marigot America/Montserrat "
        "America/Port_of_Spain America/Puerto_Rico America/St_Barthelemy America/St_Kitts "
        "America/St_Lucia America/St_Thomas America/St_Vincent America/Tortola America/Virgin "
        "Etc/GMT+4"
    ),
    (-240, -180): (
        "America/Asuncion America/Barbados America/Boa_Vista America/Campo_Grande "
        "America/Coyhaique America/Cuiaba America/Glace_Bay America/Guyana America/Halifax "
        "America/Manaus America/Martinique America/Moncton America/Porto_Velho "
        "America/Punta_Arenas America/Santarem America/Santiago America/Thule "
        "Atlantic/Bermuda Brazil/West Canada/Atlantic Chile/Continental"
    ),
    (-240, -120): (
        "America/Argentina/Catamarca America/Argentina/ComodRivadavia "
        "America/Argentina/Cordoba America/Argentina/Jujuy America/Argentina/La_Rioja "
        "America/Argentina/Mendoza America/Argentina/Rio_Gallegos America/Argentina/Salta "
        "America/Argentina/San_Juan America/Argentina/San_Luis America/Argentina/Tucuman "
        "America/Argentina/Ushuaia America/Catamarca America/Cordoba America/Goose_Bay "
        "America/Jujuy America/Mendoza America/Miquelon America/Rosario Antarctica/Palmer "
        "Atlantic/Stanley"
    ),
    (-210, -180): "America/Paramaribo",
    (-210, -90): "America/St_Johns Canada/Newfoundland",
    (-180, -180): "America/Cayenne Etc/GMT+3",
    (-180, -120): (
        "America/Araguaina America/Argentina/Buenos_Aires America/Bahia America/Belem "
        "America/Buenos_Aires America/Fortaleza America/Maceio America/Recife "
        "America/Sao_Paulo Brazil/East"
    ),
    (-180, -90): "America/Montevideo",
    (-180, -60): "America/Godthab America/Nuuk",
    (-180, 0): "America/Danmarkshavn Antarctica/Rothera",
    (-120, -120): "Atlantic/South_Georgia Etc/GMT+2",
    (-120, -60): "America/Noronha Atlantic/Cape_Verde Brazil/DeNoronha",
    (-120, 0): "America/Scoresbysund",
    (-60, -60): "Etc/GMT+1",
    (-60, 0): "Africa/Bissau",
    (-60, 60): "Africa/El_Aaiun Atlantic/Azores",
    (-45, 0): "Africa/Monrovia",
    (0, 0): (
        "Africa/Abidjan Africa/Accra Africa/Bamako Africa/Banjul Africa/Conakry Africa/Dakar "
        "Africa/Freetown Africa/Lome Africa/Nouakchott Africa/Ouagadougou Africa/Timbuktu "
        "Atlantic/Reykjavik Atlantic/St_Helena Etc/GMT Etc/GMT+0 Etc/GMT-0 Etc/GMT0 "
        "Etc/Greenwich Etc/UCT Etc/UTC Etc/Universal Etc/Zulu GMT UTC Zulu"
    ),
    (0, 60): (
        "Africa/Casablanca Africa/Sao_Tome Atlantic/Canary Atlantic/Faeroe Atlantic/Faroe "
        "Atlantic/Madeira Europe/Belfast Europe/Dublin Europe/Guernsey Europe/Isle_of_Man "
        "Europe/Jersey Europe/London"
    ),
    (0, 120): "Africa/Algiers Africa/Ceuta Antarctica/Troll Europe/Lisbon",
    (0, 420): "Antarctica/Vostok",
    (60, 60): (
        "Africa/Bangui Africa/Brazzaville Africa/Douala Africa/Kinshasa Africa/Lagos "
        "Africa/Libreville Africa/Luanda Africa/Malabo Africa/Niamey Africa/Porto-Novo "
        "Etc/GMT-1"
    ),
    (60, 120): (
        "Africa/Ndjamena Africa/Tripoli Africa/Tunis Africa/Windhoek Arctic/Longyearbyen "
        "Atlantic/Jan_Mayen Europe/Amsterdam Europe/Andorra Europe/Belgrade Europe/Berlin "
        "Europe/Bratislava Europe/Brussels Europe/Budapest Europe/Busingen Europe/Copenhagen "
        "Europe/Gibraltar Europe/Ljubljana Europe/Luxembourg Europe/Madrid Europe/Malta "
        "Europe/Monaco Europe/Oslo Europe/Paris Europe/Podgorica Europe/Prague Europe/Rome "
        "Europe/San_Marino Europe/Sarajevo Europe/Skopje Europe/Stockholm Europe/Tirane "
        "Europe/Vaduz Europe/Vatican Europe/Vienna Europe/Warsaw Europe/Zagreb Europe/Zurich"
    ),
    (60, 240): "Europe/Vilnius",
    (120, 120): (
        "Africa/Blantyre Africa/Bujumbura Africa/Gaborone Africa/Harare Africa/Johannesburg "
        "Africa/Kigali Africa/Lubumbashi Africa/Lusaka Africa/Maputo Africa/Maseru "
        "Africa/Mbabane Etc/GMT-2"
    ),
    (120, 180): (
        "Africa/Cairo Africa/Juba Africa/Khartoum Asia/Amman Asia/Beirut Asia/Damascus "
        "Asia/Famagusta Asia/Gaza Asia/Hebron Asia/Jerusalem Asia/Nicosia Asia/Tel_Aviv "
        "Europe/Athens Europe/Bucharest Europe/Helsinki Europe/Mariehamn Europe/Nicosia "
        "Europe/Sofia"
    ),
    (120, 240): (
        "Asia/Istanbul Europe/Chisinau Europe/Istanbul Europe/Kaliningrad Europe/Kiev "
        "Europe/Kyiv Europe/Minsk Europe/Moscow Europe/Riga Europe/Simferopol Europe/Tallinn "
        "Europe/Tiraspol Europe/Uzhgorod Europe/Zaporozhye"
    ),
    (120, 300): "Europe/Ulyanovsk",
    (180, 180): (
        "Africa/Addis_Ababa Africa/Asmara Africa/Asmera Africa/Dar_es_Salaam Africa/Djibouti "
        "Africa/Kampala Africa/Mogadishu Africa/Nairobi Antarctica/Syowa Asia/Aden "
        "Asia/Kuwait Asia/Riyadh Etc/GMT-3 Indian/Antananarivo Indian/Comoro Indian/Mayotte"
    ),
    (180, 240): "Asia/Baghdad Asia/Bahrain Asia/Qatar",
    (180, 300): (
        "Asia/Baku Asia/Tbilisi Asia/Yerevan Europe/Astrakhan Europe/Kirov Europe/Samara "
        "Europe/Saratov Europe/Volgograd"
    ),
    (210, 300): "Asia/Tehran",
    (240, 240): "Asia/Dubai Asia/Muscat Etc/GMT-4 Indian/Mahe Indian/Reunion",
    (240, 300): "Indian/Mauritius",
    (240, 360): (
        "Asia/Aqtau Asia/Aqtobe Asia/Ashgabat Asia/Ashkhabad Asia/Atyrau Asia/Oral "
        "Asia/Qostanay Asia/Yekaterinburg"
    ),
    (270, 270): "Asia/Kabul",
    (300, 300): "Etc/GMT-5 Indian/Kerguelen Indian/Maldives",
    (300, 360): "Antarctica/Mawson Asia/Karachi Asia/Qyzylorda Asia/Samarkand Indian/Chagos",
    (300, 420): "Antarctica/Davis Asia/Almaty Asia/Bishkek Asia/Dushanbe Asia/Omsk Asia/Tashkent",
    (330, 330): "Asia/Calcutta Asia/Kolkata",
    (330, 345): "Asia/Kathmandu Asia/Katmandu",
    (330, 360): "Asia/Thimbu Asia/Thimphu",
    (330, 390): "Asia/Colombo",
    (360, 360): "Asia/Kashgar Asia/Urumqi Etc/GMT-6",
    (360, 420): "Asia/Dacca Asia/Dhaka",
    (360, 480): (
        "Asia/Barnaul Asia/Hovd Asia/Krasnoyarsk Asia/Novokuznetsk Asia/Novosibirsk Asia/Tomsk"
    ),
    (390, 390): "Asia/Rangoon Asia/Yangon Indian/Cocos",
    (
        420,
        420,
    ): "Asia/Bangkok Asia/Jakarta Asia/Phnom_Penh Asia/Vientiane Etc/GMT-7 Indian/Christmas",
    (420, 480): "Asia/Ho_Chi_Minh Asia/Pontianak Asia/Saigon",
    (420, 540): "Asia/Choibalsan Asia/Irkutsk Asia/Ulaanbaatar Asia/Ulan_Bator",
    (450, 480): "Asia/Kuala_Lumpur Asia/Singapore",
    (480, 480): "Asia/Brunei Asia/Kuching Asia/Makassar Asia/Ujung_Pandang Etc/GMT-8",
    (480, 540): (
        "Asia/Chongqing Asia/Chungking Asia/Dili Asia/Harbin Asia/Hong_Kong Asia/Macao "
        "Asia/Macau Asia/Manila Asia/Shanghai Asia/Taipei Australia/Perth Australia/West"
    ),
    (480, 600): "Asia/Chita Asia/Yakutsk",
    (480, 660): "Antarctica/Casey Asia/Khandyga",
    (510, 540): "Asia/Pyongyang",
    (525, 585): "Australia/Eucla",
    (540, 540): "Asia/Jayapura Asia/Tokyo Etc/GMT-9 Pacific/Palau",
    (540, 600): "Asia/Seoul",
    (540, 660): "Asia/Vladivostok",
    (540, 720): "Asia/Ust-Nera",
    (570, 570): "Australia/Darwin Australia/North",
    (570, 630): "Australia/Adelaide Australia/Broken_Hill Australia/South Australia/Yancowinna",
    (600, 600): (
        "Antarctica/DumontDUrville Etc/GMT-10 Pacific/Chuuk Pacific/Port_Moresby Pacific/Truk "
        "Pacific/Yap"
    ),
    (600, 660): (
        "Antarctica/Macquarie Australia/ACT Australia/Brisbane Australia/Canberra "
        "Australia/Currie Australia/Hobart Australia/Lindeman Australia/Melbourne "
        "Australia/NSW Australia/Queensland Australia/Sydney Australia/Tasmania "
        "Australia/Victoria Pacific/Bougainville Pacific/Guam Pacific/Saipan"
    ),
    (600, 690): "Australia/LHI Australia/Lord_Howe",
    (600, 720): "Asia/Magadan Asia/Sakhalin Asia/Srednekolymsk",
    (660, 660): "Etc/GMT-11 Pacific/Guadalcanal Pacific/Pohnpei Pacific/Ponape",
    (660, 720): "Pacific/Efate Pacific/Kosrae Pacific/Noumea",
    (660, 750): "Pacific/Norfolk",
    (660, 780): "Asia/Kamchatka",
    (660, 840): "Asia/Anadyr",
    (690, 720): "Pacific/Nauru",
    (720, 720): (
        "Etc/GMT-12 Pacific/Funafuti Pacific/Majuro Pacific/Tarawa Pacific/Wake Pacific/Wallis"
    ),
    (720, 780): "Antarctica/McMurdo Antarctica/South_Pole Pacific/Auckland Pacific/Fiji",
    (765, 825): "Pacific/Chatham",
    (780, 780): "Etc/GMT-13",
    (780, 840): "Pacific/Tongatapu",
    (840, 840): "Etc/GMT-14",
}
"""The least and the most minutes that local time is ahead of UTC, with the zones of these ends."""
ZONES = MappingProxyType({name: ends for ends, names in _OFFSETS.items() for name in names.split()})
_BY_WORD = {name.casefold(): name for name in ZONES}
_BY_WORD |= dict.fromkeys(
    (
        "utc", "gmt", "z", "zulu", "etc/utc", "etc/uct", "etc/gmt", "etc/zulu", "etc/universal",
        "etc/greenwich",
    ),
    "UTC",
)  # fmt: skip


def zone_named(text: str) -> str | None:
    """The name of a zone, in whatever case it is written. All names of UTC give one name.

    >>> zone_named("europe/berlin"), zone_named("CEST"), zone_named("Etc/GMT")
    ('Europe/Berlin', None, 'UTC')
    """
    return _BY_WORD.get(text.casefold())
