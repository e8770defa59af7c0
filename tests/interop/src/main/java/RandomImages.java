import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * Makes an image of records, which a delta takes so many at a time. Standard input: a line {"deltas": [[value, ..], ..]}
 * for each image, values in hex. Prints for each a line {"refused", "metadata_version", "records"}: the numbers of the records at which the
 * delta raised, which are left out, and the records of the image, written for the newest metadata.version.
 */
public final class RandomImages {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        for (JsonNode line : Json.standardInput()) {
            System.out.println(JSON.writeValueAsString(image(line.get("deltas"))));
        }
    }

    private static ObjectNode image(JsonNode deltas) {
        ObjectNode line = JSON.createObjectNode();
        ArrayNode refused = line.putArray("refused");
        MetadataImage image = MetadataImage.EMPTY;
        int number = 0;
        for (JsonNode values : deltas) {
            List<ApiMessage> taken = new ArrayList<>();
            MetadataDelta delta = replayed(image, taken);
            for (JsonNode value : values) {
                ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(value.textValue()));
                ApiMessage record = MetadataRecordSerde.INSTANCE
                        .read(new ByteBufferAccessor(bytes), bytes.remaining())
                        .message();
                try {
                    delta.replay(record);
                    taken.add(record);
                } catch (RuntimeException error) {
                    refused.add(number);
                    delta = replayed(image, taken); // a delta that has raised may hold a part of the record
                }
                number++;
            }
            image = delta.apply(new MetadataProvenance(number, 1, 0, true));
        }
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(MetadataVersion.latestProduction())
                .setEligibleLeaderReplicasEnabled(true)
                .build());
        line.put("metadata_version", image.features().metadataVersionOrThrow().featureLevel());
        ArrayNode records = line.putArray("records");
        for (ApiMessageAndVersion record : writer.records()) {
            short type = record.message().apiKey();
            records.addObject()
                    .put("type_id", type)
                    .set("data", MetadataJsonConverters.writeJson(record.message(), record.version()));
        }
        return line;
    }

    private static MetadataDelta replayed(MetadataImage image, List<ApiMessage> records) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        records.forEach(delta::replay);
        return delta;
    }
}
