// What the driver of PostgreSQL for Java makes of values, as lines of text: as texts and, from the fifth time on, in binary form, prepared,
// in parts, and where there are errors.
//
// The arguments are the address, a user, and the file of questions. Invariant: a question that fails is a line that says so, and the next
// one is asked all the same.

import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Array;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Arrays;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.util.PSQLException;
import org.postgresql.util.ServerErrorMessage;

public class Values {
    static final String LONG = "select count(*) from kinds a, kinds b, kinds c where a.id * 1.5 < -b.id - c.id";
    static final int TURNS = 7;

    static String shown(Object value) throws SQLException {
        if (value instanceof byte[] bytes) {
            return "bytes" + Arrays.toString(bytes);
        }
        if (value instanceof Array array) {
            return array.getBaseTypeName() + Arrays.deepToString((Object[]) array.getArray());
        }
        return value == null ? "null" : value.getClass().getSimpleName() + " " + value;
    }

    static void show(ResultSet rows) throws SQLException {
        ResultSetMetaData shape = rows.getMetaData();
        for (int at = 1; at <= shape.getColumnCount(); at++) {
            System.out.println(shape.getColumnName(at) + " " + shape.getColumnTypeName(at) + " " + shape.getPrecision(at) + " " + shape.getScale(at));
        }
        while (rows.next()) {
            for (int at = 1; at <= shape.getColumnCount(); at++) {
                System.out.print((at == 1 ? "" : " | ") + shown(rows.getObject(at)));
            }
            System.out.println();
        }
    }

    static void failed(SQLException error) {
        // The message alone, without the place in the statement; and of what is no statement every server has its own words.
        ServerErrorMessage of = error instanceof PSQLException told ? told.getServerErrorMessage() : null;
        String words = of == null ? error.getMessage() : of.getMessage();
        words = "42601".equals(error.getSQLState()) ? "" : words;
        System.out.println("failed: " + error.getSQLState() + " " + words);
    }

    static void ask(Connection connection, String text, Object... values) {
        System.out.println("== " + text);
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int at = 0; at < values.length; at++) {
                statement.setObject(at + 1, values[at]);
            }
            // From the fifth time on it is a statement of the server's, and values come in binary form.
            for (int turn = 1; turn < TURNS; turn++) {
                statement.executeQuery().close();
            }
            show(statement.executeQuery());
        } catch (SQLException error) {
            failed(error);
        }
    }

    static void once(Connection connection, String text) {
        System.out.println("== once " + text);
        try (Statement statement = connection.createStatement()) {
            show(statement.executeQuery(text));
        } catch (SQLException error) {
            failed(error);
        }
    }

    static void prepared(Connection connection) throws SQLException {
        String text = "select id, price from kinds where id = ? and price = ? and name like ? and day = ? and u = ? and ok = ?";
        ask(connection, text, 8, new BigDecimal("2.67"), "n%", Date.valueOf("2000-01-07"), UUID.fromString("c9f0f895-fb98-ab91-59f5-1fd0297e236d"), true);
        ask(connection, "select id from kinds where id = any(?) order by id", connection.createArrayOf("int4", new Object[] {3, 1, null, 2}));
        ask(connection, "select id from kinds where name = any(?) order by id", connection.createArrayOf("text", new Object[] {"n\u00e4me\t5", null}));
        ask(connection, "select id from kinds where at > ? and f < ? order by id desc limit 2", Timestamp.valueOf("2024-01-02 00:00:00"), 100.5);
        ask(connection, "select id from kinds where raw = ? and big = ?", new byte[] {(byte) 0xc8, 0x1e, 0x72, (byte) 0x8d, (byte) 0x9d, 0x4c, 0x2f, 0x63, 0x6f, 0x06, 0x7f, (byte) 0x89, (byte) 0xcc, 0x14, (byte) 0x86, 0x2c}, 20000000000L);
        ask(connection, "select ?::int / ?", 1, 0);
    }

    // The result is a parameter of type void to the server.
    static void called(Connection connection) {
        System.out.println("== called");
        try (CallableStatement call = connection.prepareCall("{? = call abs(?)}")) {
            call.registerOutParameter(1, Types.INTEGER);
            for (int turn = 1; turn <= TURNS; turn++) {
                call.setInt(2, -turn);
                call.execute();
                System.out.println(call.getInt(1));
            }
        } catch (SQLException error) {
            failed(error);
        }
    }

    static void settings(Connection connection) throws SQLException {
        ask(connection, "select set_config('app.tenant', ?, ?)", "it's", false);
        ask(connection, "select current_setting('app.tenant')");
        ask(connection, "select pg_advisory_unlock_all()");
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        System.out.println(connection.getTransactionIsolation() == Connection.TRANSACTION_SERIALIZABLE);
    }

    static void inParts(Connection connection) throws SQLException {
        System.out.println("== in parts");
        connection.setAutoCommit(false);
        try (PreparedStatement statement = connection.prepareStatement("select id, at from kinds order by id")) {
            statement.setFetchSize(300);
            int count = 0;
            for (ResultSet rows = statement.executeQuery(); rows.next(); count++) {
                if (count % 100 == 0) {
                    System.out.println(rows.getInt(1) + " " + shown(rows.getObject(2)));
                }
            }
            System.out.println(count);
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    static void failsAndGoesOn(Connection connection) throws SQLException {
        System.out.println("== a transaction that failed");
        connection.setAutoCommit(false);
        once(connection, "select 1 / 0");
        once(connection, "select 1");
        connection.rollback();
        once(connection, "select 41 + 1");
        connection.rollback();
        connection.setAutoCommit(true);
    }

    static void cancelled(Connection connection) throws Exception {
        System.out.println("== cancelled");
        try (Statement statement = connection.createStatement()) {
            Thread other = new Thread(() -> {
                try {
                    Thread.sleep(300);
                    statement.cancel();
                } catch (InterruptedException | SQLException error) {
                    System.out.println(error);
                }
            });
            other.start();
            try {
                statement.executeQuery(LONG);
            } catch (SQLException error) {
                failed(error);
            }
            other.join();
        }
        once(connection, "select 41 + 1");
    }

    public static void main(String[] given) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", given[1]);
        properties.setProperty("sslmode", "disable");
        properties.setProperty("gssEncMode", "disable");
        try (Connection connection = DriverManager.getConnection(given[0], properties)) {
            for (String question : Files.readAllLines(Path.of(given[2]))) {
                once(connection, question);
                ask(connection, question);
            }
            prepared(connection);
            called(connection);
            settings(connection);
            inParts(connection);
            failsAndGoesOn(connection);
            cancelled(connection);
        }
    }
}
