import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Serializes the metadata records that make the topics on standard input: {"name", "partitions"} a line. Prints a line
 * {"name", "records"} for each. Argument: the node that has all replicas.
 */
public final class TopicRecords {
    private static final short PARTITION_VERSION = MetadataVersion.latestProduction().partitionRecordVersion();

    public static void main(String[] args) throws Exception {
        int node = Integer.parseInt(args[0]);
        for (JsonNode line : Json.standardInput()) {
            TopicRecord topic = new TopicRecord().setName(line.get("name").textValue()).setTopicId(Uuid.randomUuid());
            List<String> records = new ArrayList<>(List.of(serialized(topic, (short) 0)));
            for (int partition = 0; partition < line.get("partitions").intValue(); partition++) {
                records.add(serialized(partition(topic.topicId(), partition, node), PARTITION_VERSION));
            }
            System.out.write(Json.line(Map.of("name", topic.name(), "records", records)));
        }
        System.out.flush();
    }

    private static PartitionRecord partition(Uuid topicId, int partition, int node) {
        return new PartitionRecord()
                .setTopicId(topicId)
                .setPartitionId(partition)
                .setReplicas(List.of(node))
                .setIsr(List.of(node))
                .setLeader(node)
                .setLeaderEpoch(0)
                .setPartitionEpoch(0)
                .setDirectories(List.of(DirectoryId.UNASSIGNED));
    }

    private static String serialized(ApiMessage message, short version) {
        var record = new ApiMessageAndVersion(message, version);
        var cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(MetadataRecordSerde.INSTANCE.recordSize(record, cache));
        MetadataRecordSerde.INSTANCE.write(record, cache, new ByteBufferAccessor(bytes));
        return HexFormat.of().formatHex(bytes.array());
    }
}
