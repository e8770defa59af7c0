import java.util.Arrays;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A job of Flink that copies topics, up to the end that they have when it starts: each record as a line with its topic,
 * partition and offset, exactly once. Arguments: servers to read from, isolation level, servers to write to, topic to
 * write to, topics to read.
 */
public final class Copy {
    private static final int CHECKPOINT_MS = 200;
    private static final String TRANSACTION_TIMEOUT_MS = "60000";

    public static void main(String[] arguments) throws Exception {
        KafkaSource<String> source =
                KafkaSource.<String>builder()
                        .setBootstrapServers(arguments[0])
                        .setTopics(Arrays.copyOfRange(arguments, 4, arguments.length))
                        .setGroupId("flink")
                        .setStartingOffsets(OffsetsInitializer.earliest())
                        .setBounded(OffsetsInitializer.latest())
                        .setProperty("isolation.level", arguments[1])
                        .setDeserializer(new Place())
                        .build();
        KafkaSink<String> sink =
                KafkaSink.<String>builder()
                        .setBootstrapServers(arguments[2])
                        .setRecordSerializer(
                                KafkaRecordSerializationSchema.<String>builder()
                                        .setTopic(arguments[3])
                                        .setValueSerializationSchema(new SimpleStringSchema())
                                        .build())
                        .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                        .setTransactionalIdPrefix("flink")
                        .setProperty("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
                        .build();
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(2);
        flink.enableCheckpointing(CHECKPOINT_MS);
        flink.fromSource(source, WatermarkStrategy.noWatermarks(), "topics").sinkTo(sink);
        flink.execute();
    }

    /** A record as the place where it is. */
    private static final class Place implements KafkaRecordDeserializationSchema<String> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String> lines) {
            lines.collect(record.topic() + " " + record.partition() + " " + record.offset());
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return TypeInformation.of(String.class);
        }
    }
}
