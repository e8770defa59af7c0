import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.image.node.MetadataNode;
import org.apache.kafka.image.node.printer.MetadataNodeRedactionCriteria;
import org.apache.kafka.image.node.printer.NodeStringifier;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.fault.FaultHandler;
import org.apache.kafka.shell.command.Commands;
import org.apache.kafka.shell.node.RootShellNode;
import org.apache.kafka.shell.state.MetadataShellState;

/**
 * Kafka's metadata shell on a file of record batches, without its MetadataShell, which does not wait until it has read
 * the whole file, and which leaves out configs that this release does not know. Runs the commands on standard input,
 * {"command"} a line with its words; prints {"output"} for each. A line {"redacted"} has the names on the way to a file
 * and prints it as Kafka prints it into its logs. Argument: the file, a snapshot or a log.
 */
public final class Shell {
    private static final LeaderAndEpoch LEADER = new LeaderAndEpoch(OptionalInt.of(1), 1);
    private static final FaultHandler FAULTS = (message, cause) -> new IllegalStateException(message, cause);

    private static MetadataImage image = MetadataImage.EMPTY;

    public static void main(String[] args) throws Exception {
        load(new File(args[0]));
        MetadataShellState state = new MetadataShellState();
        state.setRoot(new RootShellNode(image));
        Commands commands = new Commands(false);
        for (JsonNode line : Json.standardInput()) {
            String output = line.has("command")
                    ? run(commands, words(line.get("command")), state)
                    : redacted(state.root(), words(line.get("redacted")));
            System.out.write(Json.line(Map.of("output", output)));
        }
        System.out.flush();
    }

    private static List<String> words(JsonNode array) {
        List<String> words = new ArrayList<>();
        array.forEach(word -> words.add(word.textValue()));
        return words;
    }

    private static String run(Commands commands, List<String> words, MetadataShellState state) throws Exception {
        StringWriter output = new StringWriter();
        commands.parseCommand(words).run(Optional.empty(), new PrintWriter(output), state);
        return output.toString();
    }

    private static String redacted(MetadataNode node, List<String> names) {
        for (String name : names) {
            node = node.child(name);
        }
        NodeStringifier printer = new NodeStringifier(MetadataNodeRedactionCriteria.Strict.INSTANCE);
        node.print(printer);
        return printer.toString();
    }

    private static void load(File file) throws Exception {
        var loader = new MetadataBatchLoader(
                new LogContext(), Time.SYSTEM, FAULTS, (delta, to, manifest) -> image = to, (type, name) -> true);
        loader.resetToImage(image);
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                if (!batch.isControlBatch()) {
                    loader.loadBatch(Image.read(batch), LEADER);
                    loader.maybeFlushBatches(LEADER, true);
                }
            }
        }
    }
}
