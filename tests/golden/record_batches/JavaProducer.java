// Writes the records on stdin with Kafka's own producer, once per codec and timestamp type, and
// to topics that will be compacted three batches whose keys repeat.
//
// A line is a record: timestamp, key and value, "-" for null, else "=" and the value in hex.
// Every record has the headers {h1: "one", h1: "two", empty: "", none: null}, the first has none.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class JavaProducer {
    public static void main(String[] args) throws Exception {
        List<String[]> lines = new ArrayList<>();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            lines.add(line.split(" "));
        }
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            for (String kind : List.of("CreateTime", "LogAppendTime")) {
                produce(args[0], "java-" + codec + "-" + kind, codec, lines);
            }
        }
        for (String codec : List.of("none", "gzip")) {
            produceKeys(args[0], "java-" + codec + "-compacted", codec);
        }
    }

    static KafkaProducer<byte[], byte[]> producer(String servers, String codec) {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", servers,
                "compression.type", codec,
                "linger.ms", "60000");
        ByteArraySerializer bytes = new ByteArraySerializer();
        return new KafkaProducer<>(settings, bytes, bytes);
    }

    // A value is its key and its offset.
    static void produceKeys(String servers, String topic, String codec) {
        try (KafkaProducer<byte[], byte[]> producer = producer(servers, codec)) {
            int offset = 0;
            for (String batch : List.of("adacba", "aeceaf", "z")) {
                for (String key : batch.split("")) {
                    byte[] value = (key + offset).getBytes();
                    long time = 1_600_000_000_000L + offset++;
                    producer.send(new ProducerRecord<>(topic, 0, time, key.getBytes(), value));
                }
                producer.flush();
            }
        }
    }

    static void produce(String servers, String topic, String codec, List<String[]> lines) {
        try (KafkaProducer<byte[], byte[]> producer = producer(servers, codec)) {
            for (String[] line : lines) {
                Long time = Long.valueOf(line[0].substring(1));
                ProducerRecord<byte[], byte[]> record =
                        new ProducerRecord<>(topic, 0, time, parse(line[1]), parse(line[2]));
                if (line != lines.get(0)) {
                    record.headers()
                            .add("h1", "one".getBytes())
                            .add("h1", "two".getBytes())
                            .add("empty", new byte[0])
                            .add("none", null);
                }
                producer.send(record);
            }
            producer.flush();
        }
    }

    static byte[] parse(String field) {
        return field.equals("-") ? null : HexFormat.of().parseHex(field.substring(1));
    }
}
