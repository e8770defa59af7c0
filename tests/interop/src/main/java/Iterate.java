import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;

/** Iterates over the records in bytes with every check, as a consumer does: rows, and whatever ends them. */
public final class Iterate {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        for (JsonNode line : Json.standardInput()) {
            List<Object> rows = new ArrayList<>();
            Map<String, Object> answer = new LinkedHashMap<>();
            answer.put("rows", rows);
            answer.put("error", iterate(HEX.parseHex(line.get("bytes").textValue()), rows));
            System.out.write(Json.line(answer));
        }
        System.out.flush();
    }

    private static String iterate(byte[] bytes, List<Object> rows) {
        try {
            for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
                batch.ensureValid();
                for (Record record : batch) {
                    record.ensureValid();
                    rows.add(row(record));
                }
            }
            return null;
        } catch (RuntimeException | Error e) {
            return e.toString();
        }
    }

    private static List<Object> row(Record record) {
        List<Object> row = new ArrayList<>();
        row.add(record.offset());
        row.add(record.timestamp());
        row.add(hex(record.key()));
        row.add(hex(record.value()));
        for (Header header : record.headers()) {
            row.add(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)));
        }
        return row;
    }

    private static String hex(ByteBuffer bytes) {
        return bytes == null ? null : HEX.formatHex(Utils.toNullableArray(bytes));
    }
}
