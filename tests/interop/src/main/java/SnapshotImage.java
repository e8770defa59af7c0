import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.snapshot.FileRawSnapshotReader;
import org.apache.kafka.snapshot.RecordsSnapshotReader;
import org.apache.kafka.snapshot.Snapshots;

/**
 * Loads snapshots as a controller does, checksums included. Arguments: the snapshots. Prints a line {"offset", "epoch",
 * "timestamp", "records"} for each: what it stands for, and the records of the image that it makes.
 */
public final class SnapshotImage {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int BATCH_BYTES = 8 << 20;

    public static void main(String[] args) throws Exception {
        for (String file : args) {
            System.out.println(JSON.writeValueAsString(read(Path.of(file))));
        }
    }

    private static ObjectNode read(Path file) throws Exception {
        var id = Snapshots.parse(file).orElseThrow().snapshotId();
        var delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        try (var raw = FileRawSnapshotReader.open(file.getParent(), id);
                var reader = RecordsSnapshotReader.of(
                        raw, MetadataRecordSerde.INSTANCE, BufferSupplier.create(), BATCH_BYTES, true, new LogContext())) {
            while (reader.hasNext()) {
                for (ApiMessageAndVersion record : reader.next().records()) {
                    delta.replay(record.message());
                }
            }
            delta.finishSnapshot();
            ObjectNode line = JSON.createObjectNode();
            line.put("offset", reader.lastContainedLogOffset());
            line.put("epoch", reader.lastContainedLogEpoch());
            line.put("timestamp", reader.lastContainedLogTimestamp());
            line.set("records", records(delta.apply(new MetadataProvenance(0, 0, 0, true))));
            return line;
        }
    }

    private static ArrayNode records(MetadataImage image) {
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        ArrayNode records = JSON.createArrayNode();
        for (ApiMessageAndVersion record : writer.records()) {
            short type = record.message().apiKey();
            records.addObject()
                    .put("type_id", type)
                    .put("version", record.version())
                    .set("data", MetadataJsonConverters.writeJson(record.message(), record.version()));
        }
        return records;
    }
}
