import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metadata.BeginTransactionRecord;
import org.apache.kafka.common.metadata.EndTransactionRecord;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * What only a release from 4.4 on writes. "fill ADDRESS" makes a topic and an ACL for a range of addresses,
 * "unregister ADDRESS ID" takes a controller's registration away, and "image FILE" prints the records of the image
 * that Kafka makes of a log file, a line {"type_id", "version", "data"} each.
 */
public final class Unregister {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        if (args[0].equals("image")) {
            image(new File(args[1]));
            return;
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[1]))) {
            if (args[0].equals("unregister")) {
                admin.unregisterController(Integer.parseInt(args[2])).all().get();
                return;
            }
            admin.createTopics(List.of(new NewTopic("orders", 2, (short) 1))).all().get();
            admin.createAcls(List.of(new AclBinding(
                            new ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL),
                            new AccessControlEntry(
                                    "User:a", "10.0.0.0/8", AclOperation.READ, AclPermissionType.ALLOW))))
                    .all()
                    .get();
        }
    }

    private static void image(File file) throws Exception {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        long last = -1;
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                for (Record record : batch) {
                    last = record.offset();
                    if (batch.isControlBatch()) {
                        continue;
                    }
                    ApiMessage message = MetadataRecordSerde.INSTANCE
                            .read(new ByteBufferAccessor(record.value()), record.valueSize())
                            .message();
                    // the one transaction is that of the bootstrap, which ends
                    if (!(message instanceof BeginTransactionRecord || message instanceof EndTransactionRecord)) {
                        delta.replay(message);
                    }
                }
            }
        }
        MetadataImage image = delta.apply(new MetadataProvenance(last, 1, 0, true));
        RecordListWriter writer = new RecordListWriter();
        image.write(writer, new ImageWriterOptions.Builder(image).build());
        for (ApiMessageAndVersion record : writer.records()) {
            short type = record.message().apiKey();
            System.out.println(JSON.writeValueAsString(JSON.createObjectNode()
                    .put("type_id", type)
                    .put("version", record.version())
                    .set("data", MetadataJsonConverters.writeJson(record.message(), record.version()))));
        }
    }
}
