import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Says whether Kafka's builder takes what it is given: {"timestamp_ms", "producer_id", "producer_epoch",
 * "base_sequence", "is_transactional"} or {"compression", "level"} a line in, {"taken"} out.
 */
public final class BuilderRules {
    public static void main(String[] args) throws Exception {
        for (JsonNode line : Json.standardInput()) {
            boolean taken = true;
            try {
                if (line.has("level")) level(line.get("compression").textValue(), line.get("level").intValue());
                else build(line);
            } catch (IllegalArgumentException refused) {
                taken = false;
            }
            System.out.write(Json.line(Map.of("taken", taken)));
        }
        System.out.flush();
    }

    private static void level(String compression, int level) {
        switch (compression) {
            case "gzip" -> Compression.gzip().level(level).build();
            case "lz4" -> Compression.lz4().level(level).build();
            case "zstd" -> Compression.zstd().level(level).build();
            default -> throw new AssertionError(compression);
        }
    }

    private static void build(JsonNode line) {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                ByteBuffer.allocate(1024),
                RecordBatch.MAGIC_VALUE_V2,
                Compression.NONE,
                TimestampType.CREATE_TIME,
                0,
                RecordBatch.NO_TIMESTAMP,
                line.get("producer_id").longValue(),
                line.get("producer_epoch").shortValue(),
                line.get("base_sequence").intValue(),
                line.get("is_transactional").booleanValue(),
                false,
                RecordBatch.NO_PARTITION_LEADER_EPOCH,
                1024);
        builder.append(line.get("timestamp_ms").longValue(), null, new byte[] {118});
        builder.build();
    }
}
