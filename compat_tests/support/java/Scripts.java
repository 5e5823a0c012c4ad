import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
// Exit lies in the second one since Apache Kafka 4.4.
import org.apache.kafka.common.utils.*;
import org.apache.kafka.common.utils.internals.*;

/**
 * Runs Apache Kafka's command-line tools one after the other in one process: a start takes longer
 * than most of them do. A line asks: the class, what it reads, its arguments, each in base64; a line
 * answers: its exit status, what it printed, what it complained of.
 */
public final class Scripts {
    /** Thrown where a tool would end the process; some catch it, and end it again as a failure. */
    private static final class Ended extends RuntimeException {
    }

    private static Integer status;

    public static void main(String[] ignored) throws Exception {
        Exit.Procedure end = (code, message) -> {
            if (message != null) {
                System.err.println(message);
            }
            if (status == null) {
                status = code;
            }
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        List<Runnable> hooks = new ArrayList<>();
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        InputStream in = System.in;
        PrintStream out = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split(" ");
            String[] arguments = new String[fields.length - 2];
            for (int each = 0; each < arguments.length; each++) {
                arguments[each] = text(fields[each + 2]);
            }
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            ByteArrayOutputStream complained = new ByteArrayOutputStream();
            System.setIn(new ByteArrayInputStream(Base64.getDecoder().decode(fields[1].substring(1))));
            System.setOut(new PrintStream(printed, true, "UTF-8"));
            System.setErr(new PrintStream(complained, true, "UTF-8"));
            status = null;
            int last = run(text(fields[0]), arguments);
            hooks.forEach(Runnable::run);
            hooks.clear();
            System.out.flush();
            System.err.flush();
            out.println((status == null ? last : status) + " ." + base64(printed) + " ." + base64(complained));
            out.flush();
        }
        Runtime.getRuntime().halt(0); // a tool may have left threads behind
    }

    private static int run(String tool, String[] arguments) {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) {
                thrown.getCause().printStackTrace();
            }
            return 1;
        } catch (ReflectiveOperationException thrown) {
            thrown.printStackTrace();
            return 1;
        }
    }

    private static String text(String field) {
        return new String(Base64.getDecoder().decode(field.substring(1)), StandardCharsets.UTF_8);
    }

    private static String base64(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
