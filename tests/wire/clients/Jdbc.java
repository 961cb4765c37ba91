import java.sql.*;
import java.time.LocalDate;
import java.util.*;

/** The JDBC driver: metadata, prepared statements past the server-prepare threshold, fetch size, cancel. */
public class Jdbc {
    interface Check { Object run(Connection c) throws Exception; }

    static final Map<String, Check> CHECKS = new LinkedHashMap<>();
    static final String PAGES = "SELECT page, count(*) AS n FROM visits GROUP BY page ORDER BY page";

    static void check(String name, Check what) { CHECKS.put(name, what); }

    static Connection open(String... more) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", System.getenv("PGUSER"));
        p.setProperty("password", System.getenv("PGPASSWORD"));
        p.setProperty("sslmode", "disable");
        p.setProperty("socketTimeout", "90"); // a check that hangs says so, and the others go on
        for (int i = 0; i < more.length; i += 2) p.setProperty(more[i], more[i + 1]);
        return DriverManager.getConnection("jdbc:postgresql://" + System.getenv("PGHOST") + ":"
            + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE"), p);
    }

    static List<Object> rows(ResultSet r, String... names) throws SQLException {
        List<Object> found = new ArrayList<>();
        while (r.next()) {
            List<Object> row = new ArrayList<>();
            if (names.length == 0)
                for (int i = 1; i <= r.getMetaData().getColumnCount(); i++) row.add(r.getString(i));
            for (String name : names) row.add(r.getString(name));
            found.add(row);
        }
        return found;
    }

    static List<Object> seen(ResultSetMetaData m) throws SQLException {
        List<Object> found = new ArrayList<>();
        for (int i = 1; i <= m.getColumnCount(); i++)
            found.add(List.of(m.getColumnLabel(i), m.getColumnTypeName(i), m.getColumnClassName(i)));
        return found;
    }

    static List<Object> sorts(ResultSet r, int first) throws SQLException {
        List<Object> found = new ArrayList<>();
        while (r.next()) {
            List<Object> row = new ArrayList<>();
            for (int i = 1; i <= r.getMetaData().getColumnCount(); i++) {
                Object value = r.getObject(i);
                row.add(i <= first ? value : value == null ? "null" : value.getClass().getSimpleName());
            }
            found.add(row);
        }
        return found;
    }

    static final String ENDLESS = "SELECT count(*) FROM generate_series(1, 100000) AS a(x)"
        + " CROSS JOIN generate_series(1, 100000) AS b(x) CROSS JOIN generate_series(1, 100000) AS c(x)"
        + " WHERE a.x + b.x + c.x < 0";

    /** Rows of another statement; a cancel that comes late may still hit it. */
    static List<Object> usable(Connection c) throws SQLException {
        for (int i = 0; ; i++)
            try { return rows(c.createStatement().executeQuery("SELECT 1")); }
            catch (SQLException e) { if (i > 20 || !"57014".equals(e.getSQLState())) throw e; }
    }

    interface Act { void run() throws Exception; }

    /**
     * How an endless statement ends that the act has stopped. A server forgets a stop that comes before its
     * statement, which then ends by itself in half a minute, with the same state but late: once more, then.
     */
    static String stopped(Connection c, Act act) throws Exception {
        String found = "late";
        for (int i = 0; i < 3 && found.equals("late"); i++) {
            c.createStatement().execute("SET statement_timeout = 30000");
            long began = System.nanoTime();
            found = state(act);
            if (System.nanoTime() - began > 25e9) found = "late";
        }
        return found;
    }

    static String state(Act act) throws Exception {
        try { act.run(); } catch (SQLException e) { return "error " + e.getSQLState(); }
        return "no error";
    }

    static {
        check("rows and their types", c -> {
            ResultSet r = c.createStatement().executeQuery(PAGES);
            return List.of(seen(r.getMetaData()), sorts(r, 1));
        });
        check("constants", c -> {
            ResultSet r = c.createStatement().executeQuery(
                "SELECT 1 AS i, 'x' AS t, true AS b, DATE '2024-02-29' AS d, TIMESTAMP '2024-01-01 10:00:00.25' AS m, NULL AS z");
            return List.of(seen(r.getMetaData()), rows(r));
        });
        check("getTables", c -> rows(c.getMetaData().getTables(null, "public", "%", new String[]{"TABLE", "VIEW"}),
            "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS"));
        check("getTables of the catalog", c -> rows(c.getMetaData().getTables(null, "pg_catalog", "pg_cl%", new String[]{"SYSTEM TABLE"}),
            "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE").subList(0, 1));
        check("getColumns", c -> rows(c.getMetaData().getColumns(null, "public", "%", "%"),
            "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE",
            "REMARKS", "ORDINAL_POSITION", "IS_NULLABLE", "IS_AUTOINCREMENT"));
        check("getPrimaryKeys", c -> rows(c.getMetaData().getPrimaryKeys(null, "public", "customers"),
            "TABLE_NAME", "COLUMN_NAME", "KEY_SEQ", "PK_NAME"));
        check("getImportedKeys", c -> rows(c.getMetaData().getImportedKeys(null, "public", "orders"),
            "PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "FK_NAME"));
        check("getExportedKeys", c -> rows(c.getMetaData().getExportedKeys(null, "public", "customers"),
            "PKTABLE_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME"));
        check("getIndexInfo", c -> rows(c.getMetaData().getIndexInfo(null, "public", "customers", false, true),
            "TABLE_NAME", "NON_UNIQUE", "INDEX_NAME", "COLUMN_NAME", "ORDINAL_POSITION"));
        check("getSchemas", c -> rows(c.getMetaData().getSchemas(), "TABLE_SCHEM"));
        check("getCatalogs", c -> rows(c.getMetaData().getCatalogs()));
        check("getTypeInfo", c -> {
            List<Object> kept = new ArrayList<>();
            ResultSet r = c.getMetaData().getTypeInfo();
            while (r.next())
                if (List.of("int4", "int8", "text", "float8", "date", "timestamp", "bool", "numeric").contains(r.getString("TYPE_NAME")))
                    kept.add(List.of(r.getString("TYPE_NAME"), r.getInt("DATA_TYPE"), r.getInt("PRECISION")));
            return kept;
        });
        check("getFunctions", c -> rows(c.getMetaData().getFunctions(null, "public", "%"), "FUNCTION_NAME"));
        check("getTablePrivileges", c -> {
            List<Object> found = rows(c.getMetaData().getTablePrivileges(null, "public", "orders"), "TABLE_NAME", "GRANTEE", "PRIVILEGE");
            return found.stream().filter(row -> row.toString().contains("analyst")).toList();
        });
        check("getBestRowIdentifier", c -> rows(c.getMetaData().getBestRowIdentifier(null, "public", "customers", 0, false),
            "COLUMN_NAME", "TYPE_NAME"));
        check("server", c -> List.of(c.getMetaData().getDatabaseProductName(), c.getMetaData().getDatabaseMajorVersion(),
            c.getMetaData().getIdentifierQuoteString(), c.getMetaData().getMaxColumnNameLength(), c.getCatalog(), c.getSchema()));
        check("a prepared statement past the threshold", c -> {
            PreparedStatement p = c.prepareStatement("SELECT count(*) FROM customers WHERE age > ? AND country <> ?");
            List<Object> found = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                p.setInt(1, 40 + i % 2);
                p.setString(2, "at");
                found.add(sorts(p.executeQuery(), 0));
            }
            return found;
        });
        check("dates and timestamps as parameters", c -> {
            PreparedStatement p = c.prepareStatement("SELECT count(*) FROM orders WHERE placed >= ?");
            List<Object> found = new ArrayList<>();
            for (int i = 0; i < 7; i++) {
                p.setObject(1, LocalDate.of(2024, 6, 1));
                found.add(sorts(p.executeQuery(), 0));
                p.setDate(1, java.sql.Date.valueOf("2024-06-01"));
                found.add(sorts(p.executeQuery(), 0));
            }
            PreparedStatement q = c.prepareStatement("SELECT count(*) FROM visits WHERE started < ?");
            q.setTimestamp(1, Timestamp.valueOf("2024-06-01 10:00:00"));
            found.add(sorts(q.executeQuery(), 0));
            return found;
        });
        check("metadata before execution", c -> {
            PreparedStatement p = c.prepareStatement("SELECT page, avg(seconds * 1e0::float8) AS a FROM visits WHERE customer_id > ? GROUP BY page");
            return List.of(seen(p.getMetaData()), p.getParameterMetaData().getParameterTypeName(1));
        });
        check("a fetch size", c -> {
            c.setAutoCommit(false);
            Statement s = c.createStatement();
            s.setFetchSize(3);
            List<Object> found = rows(s.executeQuery("SELECT country, population FROM countries ORDER BY country"));
            c.commit();
            return found;
        });
        check("a fetch size over private groups", c -> {
            c.setAutoCommit(false);
            PreparedStatement p = c.prepareStatement(PAGES);
            p.setFetchSize(2);
            List<Object> found = sorts(p.executeQuery(), 1);
            c.rollback();
            return found;
        });
        check("a result that scrolls", c -> {
            Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY);
            ResultSet r = s.executeQuery("SELECT country FROM countries ORDER BY 1");
            r.last();
            int count = r.getRow();
            r.absolute(2);
            return List.of(count, r.getString(1));
        });
        check("most rows", c -> {
            Statement s = c.createStatement();
            s.setMaxRows(4);
            return rows(s.executeQuery("SELECT country FROM countries ORDER BY 1"));
        });
        check("errors", c -> List.of(
            state(() -> c.createStatement().executeQuery("SELECT count(*) FROM nowhere")),
            state(() -> c.createStatement().executeQuery("SELECT nothing FROM customers")),
            state(() -> c.createStatement().executeUpdate("INSERT INTO countries VALUES ('x', 'y', 1)")),
            state(() -> c.createStatement().execute("CREATE TEMP TABLE t (a int)")),
            rows(c.createStatement().executeQuery("SELECT 1"))));
        check("transactions and savepoints", c -> {
            c.setAutoCommit(false);
            Savepoint here = c.setSavepoint("here");
            String failed = state(() -> c.createStatement().executeQuery("SELECT * FROM nowhere"));
            String aborted = state(() -> c.createStatement().executeQuery("SELECT 1"));
            c.rollback(here);
            List<Object> found = rows(c.createStatement().executeQuery("SELECT 7"));
            c.commit();
            return List.of(failed, aborted, found);
        });
        check("read-only and isolation", c -> {
            c.setReadOnly(true);
            c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            int level = c.getTransactionIsolation();
            return List.of(c.isReadOnly(), level, c.isValid(2));
        });
        check("several results", c -> {
            Statement s = c.createStatement();
            boolean first = s.execute("SELECT 1; SELECT 'b'");
            List<Object> one = rows(s.getResultSet());
            boolean second = s.getMoreResults();
            return List.of(first, one, second, rows(s.getResultSet()));
        });
        check("a canceled statement", c -> {
            Statement s = c.createStatement();
            s.cancel();
            return rows(s.executeQuery("SELECT 1"));
        });
        check("a cancel of a running statement", c -> {
            Statement s = c.createStatement();
            java.util.Timer again = new java.util.Timer(true);
            again.schedule(new TimerTask() {
                public void run() { try { s.cancel(); } catch (SQLException e) { System.err.println(e); } }
            }, 300, 300);
            String found = stopped(c, () -> s.executeQuery(ENDLESS));
            again.cancel();
            return List.of(found, usable(c));
        });
        check("a query timeout that is reached", c -> {
            Statement s = c.createStatement();
            s.setQueryTimeout(1);
            return List.of(stopped(c, () -> s.executeQuery(ENDLESS)), usable(c));
        });
        check("a statement timeout that is reached", c -> {
            c.createStatement().execute("SET statement_timeout = 300");
            String found = state(() -> c.createStatement().executeQuery(ENDLESS));
            c.createStatement().execute("RESET statement_timeout");
            return List.of(found, usable(c));
        });
        check("a query timeout that is not reached", c -> {
            Statement s = c.createStatement();
            s.setQueryTimeout(30);
            return rows(s.executeQuery("SELECT 2"));
        });
        check("arrays", c -> {
            ResultSet r = c.createStatement().executeQuery("SELECT ARRAY[1, 2, 3] AS a, ARRAY['x', NULL] AS b");
            r.next();
            return List.of(Arrays.toString((Object[]) r.getArray(1).getArray()), Arrays.toString((Object[]) r.getArray(2).getArray()));
        });
        check("simple query mode", c -> {
            try (Connection simple = open("preferQueryMode", "simple")) {
                PreparedStatement p = simple.prepareStatement("SELECT country FROM countries WHERE population > ? ORDER BY 1");
                p.setLong(1, 100);
                return rows(p.executeQuery());
            }
        });
    }

    static String json(Object o) {
        if (o == null) return "null";
        if (o instanceof Number || o instanceof Boolean) return o.toString();
        if (o instanceof List<?> list) {
            StringJoiner j = new StringJoiner(",", "[", "]");
            for (Object item : list) j.add(json(item));
            return j.toString();
        }
        return "\"" + o.toString().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\"";
    }

    public static void main(String[] args) throws Exception {
        for (Map.Entry<String, Check> one : CHECKS.entrySet()) {
            Object saw;
            try (Connection c = open()) { saw = one.getValue().run(c); }
            catch (Exception e) { saw = "FAILED " + e; }
            System.out.println("{\"check\":" + json(one.getKey()) + ",\"saw\":" + json(saw) + "}");
        }
    }
}
