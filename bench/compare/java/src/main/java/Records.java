import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;
import org.apache.kafka.common.utils.Utils;

/**
 * Record batches with Kafka's own classes. Usage: Records WORK FILE WARM-UPS. Records that are read are answered with:
 * records, bytes of keys, bytes of values, headers, sum of offsets, sum of timestamps. Batches that are written: records,
 * bytes, sum of checksums.
 */
public final class Records {
    private static final int CRC_AT = 17;
    private final BufferSupplier buffers = BufferSupplier.create();
    private long[] sums;

    public static void main(String[] arguments) throws IOException {
        Turns.take(new Records().work(arguments[0], Path.of(arguments[1])), Integer.parseInt(arguments[2]));
    }

    private Turns.Work work(String name, Path file) throws IOException {
        switch (name) {
            case "decode": {
                MemoryRecords log = load(file);
                return () -> records(log.batches());
            }
            case "decode-file": {
                FileRecords log = FileRecords.open(file.toFile());
                return () -> records(log.batches());
            }
            case "decode-each": {
                List<ByteBuffer> batches = slices(load(file));
                return () -> each(batches);
            }
            case "scan": {
                MemoryRecords log = load(file);
                return () -> headers(log.batches());
            }
            case "scan-file": {
                FileRecords log = FileRecords.open(file.toFile());
                return () -> headers(log.batches());
            }
            case "encode":
                return encode(load(file));
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static MemoryRecords load(Path file) throws IOException {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file)));
    }

    private static List<ByteBuffer> slices(MemoryRecords log) {
        List<ByteBuffer> slices = new ArrayList<>();
        int position = 0;
        for (RecordBatch batch : log.batches()) {
            slices.add(log.buffer().duplicate().position(position).limit(position + batch.sizeInBytes()).slice());
            position += batch.sizeInBytes();
        }
        return slices;
    }

    private long[] records(Iterable<? extends RecordBatch> batches) {
        sums = new long[6];
        for (RecordBatch batch : batches) {
            add(batch);
        }
        return sums;
    }

    private long[] each(List<ByteBuffer> buffers) {
        sums = new long[6];
        for (ByteBuffer buffer : buffers) {
            for (RecordBatch batch : MemoryRecords.readableRecords(buffer.duplicate()).batches()) {
                add(batch);
            }
        }
        return sums;
    }

    private void add(RecordBatch batch) {
        batch.ensureValid();
        try (CloseableIterator<Record> records = batch.streamingIterator(buffers)) {
            while (records.hasNext()) {
                Record record = records.next();
                sums[0]++;
                sums[1] += record.key().remaining();
                sums[2] += record.value().remaining();
                sums[3] += record.headers().length;
                sums[4] += record.offset();
                sums[5] += record.timestamp();
            }
        }
    }

    private long[] headers(Iterable<? extends RecordBatch> batches) {
        long records = 0;
        long lastOffsets = 0;
        for (RecordBatch batch : batches) {
            records += batch.countOrNull();
            lastOffsets += batch.lastOffset();
        }
        return new long[] {records, lastOffsets};
    }

    /** What one batch is built of. */
    private static final class Rows {
        final List<byte[]> keys = new ArrayList<>();
        final List<byte[]> values = new ArrayList<>();
        final List<Header[]> headers = new ArrayList<>();
        final List<Long> timestamps = new ArrayList<>();
        final long baseOffset;

        Rows(RecordBatch batch) {
            baseOffset = batch.baseOffset();
            for (Record record : batch) {
                keys.add(Utils.toArray(record.key()));
                values.add(Utils.toArray(record.value()));
                headers.add(record.headers());
                timestamps.add(record.timestamp());
            }
        }
    }

    private Turns.Work encode(MemoryRecords log) {
        List<Rows> all = new ArrayList<>();
        int largest = 0;
        Compression compression = Compression.NONE;
        for (RecordBatch batch : log.batches()) {
            all.add(new Rows(batch));
            largest = Math.max(largest, batch.sizeInBytes());
            compression = Compression.of(batch.compressionType()).build();
        }
        ByteBuffer buffer = ByteBuffer.allocate(4 * largest); // compression may make a batch larger
        Compression chosen = compression;
        return () -> {
            sums = new long[3];
            for (Rows rows : all) {
                buffer.clear();
                build(rows, buffer, chosen);
            }
            return sums;
        };
    }

    private void build(Rows rows, ByteBuffer buffer, Compression compression) {
        int count = rows.keys.size();
        MemoryRecordsBuilder builder = MemoryRecords.builder(buffer, RecordBatch.MAGIC_VALUE_V2, compression,
            TimestampType.CREATE_TIME, rows.baseOffset, RecordBatch.NO_TIMESTAMP, 0);
        for (int i = 0; i < count; i++) {
            builder.appendWithOffset(rows.baseOffset + i, rows.timestamps.get(i), rows.keys.get(i), rows.values.get(i),
                rows.headers.get(i));
        }
        ByteBuffer built = builder.build().buffer();
        sums[0] += count;
        sums[1] += built.remaining();
        sums[2] += built.getInt(CRC_AT) & 0xffffffffL;
    }
}
