import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.fault.FaultHandler;

/**
 * Loads a metadata log as a broker does and prints a line {"name", "partitions", "leaders"} for each topic of the last
 * image. "leaders" has for each partition what a coordinator finds as the node to which it sends markers: "none" lets it
 * take the partition for deleted, "unknown" lets it wait, otherwise a node.
 * Arguments: the folder of the partition, and after what the image is published: "batch", or "log", which is how a
 * broker finds a log of less than 8 MiB when it starts.
 */
public final class Image {
    private static final LeaderAndEpoch LEADER = new LeaderAndEpoch(OptionalInt.of(1), 1);
    private static final ListenerName LISTENER = new ListenerName("PLAINTEXT");
    private static final FaultHandler FAULTS = (message, cause) -> new IllegalStateException(message, cause);

    private MetadataImage image = MetadataImage.EMPTY;

    public static void main(String[] args) throws Exception {
        Image image = new Image();
        image.load(Path.of(args[0]), args[1].equals("batch"));
        image.print();
    }

    private void load(Path folder, boolean publishEach) throws Exception {
        MetadataBatchLoader.MetadataUpdater updater = (delta, to, manifest) -> image = to;
        SupportedConfigChecker all = (type, name) -> true;
        var constructor = MetadataBatchLoader.class.getConstructors()[0];
        Object logContext = constructor.getParameterTypes()[0].getConstructor().newInstance(); // 4.4 has moved its class
        var loader = (MetadataBatchLoader) constructor.newInstance(logContext, Time.SYSTEM, FAULTS, updater, all);
        loader.resetToImage(image);
        for (File segment : segments(folder)) {
            try (FileRecords records = FileRecords.open(segment, false)) {
                for (RecordBatch batch : records.batches()) {
                    if (batch.isControlBatch()) {
                        continue;
                    }
                    loader.loadBatch(read(batch), LEADER);
                    if (publishEach) {
                        loader.maybeFlushBatches(LEADER, true);
                    }
                }
            }
        }
        loader.maybeFlushBatches(LEADER, true);
    }

    private static List<File> segments(Path folder) throws Exception {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith(".log")).sorted().map(Path::toFile).toList();
        }
    }

    static Batch<ApiMessageAndVersion> read(RecordBatch batch) {
        List<ApiMessageAndVersion> records = new ArrayList<>();
        for (Record record : batch) {
            records.add(MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(record.value()), record.valueSize()));
        }
        return Batch.data(
                batch.baseOffset(), batch.partitionLeaderEpoch(), batch.maxTimestamp(), batch.sizeInBytes(), records);
    }

    private void print() throws Exception {
        var cache = new KRaftMetadataCache(1, () -> KRaftVersion.KRAFT_VERSION_1);
        cache.setImage(image);
        for (var topic : new TreeMap<>(image.topics().topicsByName()).values()) {
            List<String> leaders = topic.partitions().keySet().stream()
                    .sorted()
                    .map(partition -> cache.getPartitionLeaderEndpoint(topic.name(), partition, LISTENER)
                            .map(node -> node.isEmpty() ? "unknown" : node.toString())
                            .orElse("none"))
                    .toList();
            System.out.write(Json.line(
                    Map.of("name", topic.name(), "partitions", topic.partitions().size(), "leaders", leaders)));
        }
        System.out.flush();
    }
}
