// Reads and writes record batches with Kafka's own classes, for as long as stdin lasts.
//
// Everything is a size (int32) and that many bytes. On stdin an int8 and
//
//     READ    a block of batches       -> JSON: its whole batches, as `batchToJson` has them
//     WRITE   JSON, see `write`        -> one batch, or a message set of magic 0 or 1
//
// On stdout an int8, DONE or FAILED, and the answer or the text of the exception. Bytes in JSON are
// hexadecimal. The package names are those of Kafka 4.4; for 3.9 two of them are replaced.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;

public class RecordOracle {
    static final byte READ = 0;
    static final byte DONE = 0;
    static final byte FAILED = 1;
    static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] args) throws IOException {
        DataInputStream input = new DataInputStream(System.in);
        DataOutputStream output = new DataOutputStream(System.out);
        while (true) {
            byte[] task;
            try {
                task = new byte[input.readInt()];
            } catch (EOFException end) {
                return;
            }
            input.readFully(task);
            byte status = DONE;
            byte[] answer;
            try {
                ByteBuffer rest = ByteBuffer.wrap(task, 1, task.length - 1).slice();
                answer = task[0] == READ ? read(rest) : write(rest);
            } catch (RuntimeException error) {
                status = FAILED;
                answer = error.toString().getBytes(StandardCharsets.UTF_8);
            }
            output.writeInt(answer.length + 1);
            output.writeByte(status);
            output.write(answer);
            output.flush();
        }
    }

    static byte[] read(ByteBuffer block) throws IOException {
        ArrayNode batches = MAPPER.createArrayNode();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(block).batches()) {
            batch.ensureValid();
            batches.add(batchToJson(batch));
        }
        return MAPPER.writeValueAsBytes(batches);
    }

    static ObjectNode batchToJson(MutableRecordBatch batch) {
        ObjectNode json = MAPPER.createObjectNode();
        json.put("magic", batch.magic());
        json.put("baseOffset", batch.baseOffset());
        json.put("lastOffset", batch.lastOffset());
        json.put("codec", batch.compressionType().id);
        json.put("timestampType", batch.timestampType().id);
        json.put("maxTimestamp", batch.maxTimestamp());
        json.put("producerId", batch.producerId());
        json.put("producerEpoch", batch.producerEpoch());
        json.put("baseSequence", batch.baseSequence());
        json.put("isTransactional", batch.isTransactional());
        json.put("isControl", batch.isControlBatch());
        json.put("leaderEpoch", batch.partitionLeaderEpoch());
        json.put("deleteHorizon", batch.deleteHorizonMs().orElse(-1));
        ArrayNode records = json.putArray("records");
        for (Record record : batch) {
            record.ensureValid();
            records.add(recordToJson(record, batch.isControlBatch()));
        }
        return json;
    }

    static ObjectNode recordToJson(Record record, boolean isControl) {
        ObjectNode json = MAPPER.createObjectNode();
        json.put("offset", record.offset());
        json.put("timestamp", record.timestamp());
        json.put("sequence", record.sequence());
        json.put("key", hex(record.key()));
        json.put("value", hex(record.value()));
        ArrayNode headers = json.putArray("headers");
        for (Header header : record.headers()) {
            byte[] value = header.value();
            headers.addArray()
                    .add(hex(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))))
                    .add(value == null ? null : hex(ByteBuffer.wrap(value)));
        }
        if (isControl) {
            json.put("control", ControlRecordType.parse(record.key()).toString());
        }
        return json;
    }

    // The fields of `batchToJson` that a writer chooses, `logAppendTime`, and for a control batch
    // `marker` in place of `records`.
    static byte[] write(ByteBuffer task) throws IOException {
        byte[] text = new byte[task.remaining()];
        task.get(text);
        JsonNode json = MAPPER.readTree(text);
        boolean isControl = json.get("isControl").asBoolean();
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024),
                (byte) json.get("magic").asInt(),
                Compression.of(CompressionType.forId(json.get("codec").asInt())).build(),
                timestampType(json.get("timestampType").asInt()),
                json.get("baseOffset").asLong(),
                json.get("logAppendTime").asLong(),
                json.get("producerId").asLong(),
                (short) json.get("producerEpoch").asInt(),
                json.get("baseSequence").asInt(),
                json.get("isTransactional").asBoolean(),
                isControl,
                json.get("leaderEpoch").asInt(),
                Integer.MAX_VALUE,
                json.get("deleteHorizon").asLong());
        if (isControl) {
            ControlRecordType type = ControlRecordType.valueOf(json.get("marker").asText());
            EndTransactionMarker marker = new EndTransactionMarker(type, 7);
            builder.appendEndTxnMarker(json.get("logAppendTime").asLong(), marker);
        } else {
            json.get("records").forEach(record -> append(builder, record));
        }
        ByteBuffer buffer = builder.build().buffer();
        byte[] batch = new byte[buffer.remaining()];
        buffer.get(batch);
        return batch;
    }

    static TimestampType timestampType(int id) {
        for (TimestampType type : TimestampType.values()) {
            if (type.id == id) {
                return type;
            }
        }
        throw new IllegalArgumentException("no timestamp type " + id);
    }

    static void append(MemoryRecordsBuilder builder, JsonNode record) {
        List<Header> headers = new ArrayList<>();
        for (JsonNode pair : record.get("headers")) {
            String key = new String(bytes(pair.get(0)), StandardCharsets.UTF_8);
            headers.add(new RecordHeader(key, bytes(pair.get(1))));
        }
        builder.appendWithOffset(
                record.get("offset").asLong(),
                record.get("timestamp").asLong(),
                bytes(record.get("key")),
                bytes(record.get("value")),
                headers.toArray(new Header[0]));
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : HexFormat.of().parseHex(text.asText());
    }
}
