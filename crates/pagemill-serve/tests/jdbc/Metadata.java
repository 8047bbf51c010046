// What the driver of PostgreSQL for Java tells of a database: every question of DatabaseMetaData that asks the server, each answer
// as lines of text. The first argument is the address, the second a user.
//
// Invariant: an answer that fails is a line that says so, and the next question is asked all the same.

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.util.Properties;

public class Metadata {
    interface Question {
        ResultSet ask() throws SQLException;
    }

    static void show(String name, Question question) {
        System.out.println("== " + name);
        try (ResultSet rows = question.ask()) {
            ResultSetMetaData shape = rows.getMetaData();
            StringBuilder line = new StringBuilder();
            for (int at = 1; at <= shape.getColumnCount(); at++) {
                line.append(at == 1 ? "" : "|").append(shape.getColumnLabel(at)).append(':').append(shape.getColumnTypeName(at));
            }
            System.out.println(line);
            while (rows.next()) {
                line.setLength(0);
                for (int at = 1; at <= shape.getColumnCount(); at++) {
                    line.append(at == 1 ? "" : "|").append(rows.getString(at));
                }
                System.out.println(line);
            }
        } catch (SQLException error) {
            System.out.println("failed: " + error.getSQLState() + " " + error.getMessage());
        }
    }

    public static void main(String[] given) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", given[1]);
        properties.setProperty("sslmode", "disable");
        properties.setProperty("gssEncMode", "disable");
        try (Connection connection = DriverManager.getConnection(given[0], properties)) {
            DatabaseMetaData of = connection.getMetaData();
            show("getSchemas", () -> of.getSchemas());
            show("getSchemas shop%", () -> of.getSchemas(null, "sho%"));
            show("getCatalogs", () -> of.getCatalogs());
            show("getTables", () -> of.getTables(null, "shop", "%", null));
            show("getTables of kinds", () -> of.getTables(null, null, "%", new String[] {"TABLE", "VIEW", "SEQUENCE", "INDEX"}));
            show("getTables of the system", () -> of.getTables(null, "pg_catalog", "pg_t%", null));
            show("getColumns", () -> of.getColumns(null, "shop", "%", "%"));
            show("getColumns of the system", () -> of.getColumns(null, "pg_catalog", "pg_class", "%"));
            for (String table : new String[] {"customers", "orders", "lines", "measures", "seen", "parts"}) {
                show("getPrimaryKeys " + table, () -> of.getPrimaryKeys(null, "shop", table));
                show("getIndexInfo " + table, () -> of.getIndexInfo(null, "shop", table, false, true));
                show("getIndexInfo unique " + table, () -> of.getIndexInfo(null, "shop", table, true, true));
                show("getImportedKeys " + table, () -> of.getImportedKeys(null, "shop", table));
                show("getExportedKeys " + table, () -> of.getExportedKeys(null, "shop", table));
                show("getBestRowIdentifier " + table, () -> of.getBestRowIdentifier(null, "shop", table, 0, true));
                show("getVersionColumns " + table, () -> of.getVersionColumns(null, "shop", table));
                show("getColumnPrivileges " + table, () -> of.getColumnPrivileges(null, "shop", table, "%"));
            }
            show("getCrossReference", () -> of.getCrossReference(null, "shop", "customers", null, "shop", "orders"));
            show("getTablePrivileges", () -> of.getTablePrivileges(null, "shop", "%"));
            show("getTypeInfo", () -> of.getTypeInfo());
            show("getProcedures", () -> of.getProcedures(null, "shop", "%"));
            show("getProcedureColumns", () -> of.getProcedureColumns(null, "shop", "%", "%"));
            show("getFunctions", () -> of.getFunctions(null, "shop", "%"));
            show("getFunctionColumns", () -> of.getFunctionColumns(null, "shop", "%", "%"));
            show("getUDTs", () -> of.getUDTs(null, "shop", "%", null));
            show("getTableTypes", () -> of.getTableTypes());
            show("getClientInfoProperties", () -> of.getClientInfoProperties());
            System.out.println("== words and numbers");
            System.out.println(of.getMaxColumnNameLength() + " " + of.getMaxColumnsInIndex());
            System.out.println(of.getSQLKeywords());
        }
    }
}
