import com.fasterxml.jackson.databind.JsonNode;
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
 * Runs one of Kafka's command line tools many times in one process: for each line {"arguments"} it prints what the tool
 * printed, in hex, and how it ended: {"output", "errors", "code"}. Argument: the tool's class.
 */
public final class Tool {
    private static final int DIED = 1; // as a JVM whose main throws

    private static final class Ended extends RuntimeException {
        private final int code;

        private Ended(int code) {
            this.code = code;
        }
    }

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        Method tool = Class.forName(args[0]).getMethod("main", String[].class);
        PrintStream lines = System.out;
        for (JsonNode line : Json.standardInput()) {
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
        int code = 0;
        try {
            tool.invoke(null, (Object) arguments);
        } catch (InvocationTargetException end) {
            code = end.getCause() instanceof Ended ended ? ended.code : DIED;
            if (!(end.getCause() instanceof Ended)) {
                System.err.println("Exception: " + end.getCause());
            }
        } finally {
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
