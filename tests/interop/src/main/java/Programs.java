import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Runs programs of this folder one after another in one process, because a JVM takes longer to start than most of them
 * run. For each line {"main", "arguments", "lines"} it gives the program the lines as standard input and prints what it
 * prints, and then a line that begins with a record separator: {"error"}, what the program has thrown, or null.
 */
public final class Programs {
    private static final String END = "\u001e";

    /** Standard output, which a program may close. */
    private static final class Output extends FilterOutputStream {
        private Output(OutputStream out) {
            super(out);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            out.write(bytes, offset, length);
        }

        @Override
        public void close() throws IOException {
            flush();
        }
    }

    public static void main(String[] args) throws Exception {
        OutputStream out = new FileOutputStream(FileDescriptor.out);
        Iterator<JsonNode> requests = Json.lines(System.in);
        while (requests.hasNext()) {
            JsonNode request = requests.next();
            System.setIn(new ByteArrayInputStream(
                    String.join("\n", strings(request.get("lines"))).getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(new Output(out), false, StandardCharsets.UTF_8));
            String error = error(request.get("main").textValue(), strings(request.get("arguments")));
            System.out.flush();
            out.write(END.getBytes(StandardCharsets.UTF_8));
            out.write(Json.line(error == null ? Map.of() : Map.of("error", error)));
            out.flush();
        }
    }

    private static String error(String main, List<String> arguments) throws Exception {
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) arguments.toArray(new String[0]));
            return null;
        } catch (InvocationTargetException thrown) {
            StringWriter trace = new StringWriter();
            thrown.getCause().printStackTrace(new PrintWriter(trace, true));
            return trace.toString();
        }
    }

    private static List<String> strings(JsonNode array) {
        List<String> strings = new ArrayList<>();
        array.forEach(text -> strings.add(text.textValue()));
        return strings;
    }
}
