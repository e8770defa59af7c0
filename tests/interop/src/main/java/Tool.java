import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after another in one process: for each line {"tool", "arguments", "input"} it runs
 * the class with this standard input, and prints what it printed, in hex, and how it ended: {"output", "errors", "code"}.
 * A tool's shutdown hooks run at its end, as those of a JVM: the console producer sends the rest of its records in one.
 */
public final class Tool {
    private static final int DIED = 1; // as a JVM whose main throws

    private static final class Ended extends RuntimeException {}

    private static final List<Runnable> hooks = new ArrayList<>();

    private static Integer firstCode; // a tool may catch what ends it, and end again

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            firstCode = firstCode == null ? code : firstCode;
            throw new Ended();
        });
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        PrintStream lines = System.out;
        for (JsonNode line : Json.standardInput()) {
            Method tool = Class.forName(line.get("tool").textValue()).getMethod("main", String[].class);
            System.setIn(new ByteArrayInputStream(line.get("input").textValue().getBytes(StandardCharsets.UTF_8)));
            List<String> arguments = new ArrayList<>();
            line.get("arguments").forEach(argument -> arguments.add(argument.textValue()));
            lines.write(Json.line(run(tool, arguments.toArray(new String[0]))));
        }
        lines.flush();
    }

    private static Map<String, Object> run(Method tool, String[] arguments) throws Exception {
        ByteArrayOutputStream output = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        PrintStream errorsBefore = System.err;
        System.setOut(new PrintStream(output, false, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, false, StandardCharsets.UTF_8));
        firstCode = null;
        int code = 0;
        try {
            tool.invoke(null, (Object) arguments);
        } catch (InvocationTargetException end) {
            code = firstCode == null ? DIED : firstCode;
            if (firstCode == null) {
                System.err.println("Exception: " + end.getCause());
            }
        } finally {
            hooks.forEach(Runnable::run);
            hooks.clear();
            System.out.flush();
            System.err.flush();
            System.setErr(errorsBefore);
        }
        return Map.of(
                "output", HexFormat.of().formatHex(output.toByteArray()),
                "errors", HexFormat.of().formatHex(errors.toByteArray()),
                "code", code);
    }
}
