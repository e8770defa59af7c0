import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.metadata.MetadataRecordSerde;

/**
 * Records of internal topics with Kafka's own classes. Usage: InternalTopics WORK SEGMENT WARM-UPS. The segment is read
 * into memory; each turn is answered with a count and a digest.
 */
public final class InternalTopics {
    private static final int LOADED_BYTES = 5 << 20; // at a time, as offsets.load.buffer.size has it

    private final Path segment;
    private final MemoryRecords log;
    private final List<ByteBuffer> keys = new ArrayList<>();
    private final List<ByteBuffer> values = new ArrayList<>();
    private final GroupCoordinatorRecordSerde commits = new GroupCoordinatorRecordSerde();
    private long count;
    private long digest; // of what was read, so that none of it can be left out

    private InternalTopics(Path segment) throws IOException {
        this.segment = segment;
        log = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(segment)));
    }

    public static void main(String[] arguments) throws IOException {
        InternalTopics topics = new InternalTopics(Path.of(arguments[1]));
        Runnable work = topics.work(arguments[0]);
        Turns.take(() -> topics.answer(work), Integer.parseInt(arguments[2]));
    }

    private long[] answer(Runnable work) {
        count = digest = 0;
        work.run();
        return new long[] {count, digest};
    }

    private Runnable work(String name) {
        switch (name) {
            case "metadata-values":
                keep();
                return () -> values.forEach(value -> metadata(value.duplicate()));
            case "metadata":
                return () -> records((key, value) -> metadata(value));
            case "replay":
                return this::replay;
            case "commit-values":
                keep();
                return () -> {
                    for (int at = 0; at < values.size(); at++) {
                        ByteBuffer value = values.get(at);
                        commit(keys.get(at).duplicate(), value == null ? null : value.duplicate());
                    }
                };
            case "commits":
                return () -> records(this::commit);
            case "offsets":
                return this::load;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private interface Reader {
        void read(ByteBuffer key, ByteBuffer value);
    }

    private void records(Reader reader) {
        for (RecordBatch batch : log.batches()) {
            batch.ensureValid();
            if (!batch.isControlBatch()) {
                for (Record record : batch) {
                    reader.read(record.key(), record.value());
                }
            }
        }
    }

    private void keep() {
        records((key, value) -> {
            keys.add(key);
            values.add(value);
        });
    }

    private ApiMessage metadata(ByteBuffer value) {
        count++;
        ApiMessage message =
            MetadataRecordSerde.INSTANCE.read(new ByteBufferAccessor(value), value.remaining()).message();
        digest += message.apiKey();
        return message;
    }

    private void commit(ByteBuffer key, ByteBuffer value) {
        count++;
        digest += commits.deserialize(key, value).key().apiKey();
    }

    /** A commit, and the offset of its record. */
    private record Commit(long recordOffset, ApiMessage value) {}

    /** Keeps the last commit of each key, as the coordinator does when it loads the partition. */
    private void load() {
        Map<ApiMessage, Commit> offsets = new HashMap<>();
        Map<Long, Map<ApiMessage, Commit>> pending = new HashMap<>();
        ByteBuffer buffer = ByteBuffer.allocate(LOADED_BYTES);
        try (FileRecords file = FileRecords.open(segment.toFile(), false)) {
            for (int at = 0; at < file.sizeInBytes();) {
                buffer.clear();
                file.readInto(buffer, at);
                for (RecordBatch batch : MemoryRecords.readableRecords(buffer).batches()) {
                    batch.ensureValid();
                    at += batch.sizeInBytes();
                    for (Record record : batch) {
                        if (batch.isControlBatch()) {
                            end(offsets, pending.remove(batch.producerId()), record);
                        } else {
                            replay(offsets, pending, batch, record);
                        }
                    }
                }
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        digest = offsets.size();
    }

    private void replay(
        Map<ApiMessage, Commit> offsets, Map<Long, Map<ApiMessage, Commit>> pending, RecordBatch batch, Record record
    ) {
        count++;
        CoordinatorRecord read = commits.deserialize(record.key(), record.value());
        if (read.value() == null) {
            offsets.remove(read.key());
            pending.values().forEach(open -> open.remove(read.key()));
            return;
        }
        Commit commit = new Commit(record.offset(), read.value().message());
        if (batch.isTransactional()) {
            pending.computeIfAbsent(batch.producerId(), id -> new HashMap<>()).put(read.key(), commit);
        } else {
            offsets.put(read.key(), commit);
        }
    }

    private static void end(Map<ApiMessage, Commit> offsets, Map<ApiMessage, Commit> open, Record marker) {
        if (open != null && ControlRecordType.parse(marker.key()) == ControlRecordType.COMMIT) {
            open.forEach((key, commit) -> offsets.merge(
                key, commit, (one, other) -> one.recordOffset() > other.recordOffset() ? one : other));
        }
    }

    private void replay() {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        records((key, value) -> {
            ApiMessage message = metadata(value);
            if (message.apiKey() != MetadataRecordType.BEGIN_TRANSACTION_RECORD.id()
                && message.apiKey() != MetadataRecordType.END_TRANSACTION_RECORD.id()) {
                delta.replay(message);
            }
        });
        MetadataImage image = delta.apply(new MetadataProvenance(count - 1, 0, 0, true));
        digest = 0;
        for (TopicImage topic : image.topics().topicsById().values()) {
            digest += topic.partitions().size();
        }
    }
}
