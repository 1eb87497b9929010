// Java's own producers and consumers of transactions, told what to do for as long as stdin lasts.
//
// Everything is a size (int32) and that many bytes of text. The first argument is the address of a
// broker. On stdin words with blanks between them:
//
//     begin PRODUCER                        a transaction; producers are made when first named
//     send PRODUCER TOPIC PARTITION COUNT MARK
//                                           a batch of records, their values MARK-0, MARK-1, …
//     commit PRODUCER, abort PRODUCER       the end of the transaction, its markers written
//     read ISOLATION TOPIC PARTITION        all up to where that isolation level ends now: a line
//                                           `offset value` for each record
//
// On stdout an int8, DONE or FAILED, and the answer or the text of the exception.

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.ArrayList;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactions {
    static final byte DONE = 0;
    static final byte FAILED = 1;
    static final Map<String, KafkaProducer<String, String>> PRODUCERS = new HashMap<>();
    static String servers;
    static Admin admin;

    public static void main(String[] args) throws IOException {
        servers = args[0];
        admin = Admin.create(Map.of("bootstrap.servers", servers));
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
            String answer;
            try {
                answer = act(new String(task, StandardCharsets.UTF_8).split(" "));
            } catch (RuntimeException | ExecutionException | InterruptedException error) {
                status = FAILED;
                answer = error.toString();
            }
            byte[] bytes = answer.getBytes(StandardCharsets.UTF_8);
            output.writeInt(bytes.length + 1);
            output.writeByte(status);
            output.write(bytes);
            output.flush();
        }
    }

    static String act(String[] words) throws ExecutionException, InterruptedException {
        switch (words[0]) {
            case "begin" -> producer(words[1]).beginTransaction();
            case "send" -> send(producer(words[1]), words);
            case "commit" -> {
                producer(words[1]).commitTransaction();
                waitForMarkers(words[1]);
            }
            case "abort" -> {
                producer(words[1]).abortTransaction();
                waitForMarkers(words[1]);
            }
            case "read" -> {
                return read(words[1], new TopicPartition(words[2], Integer.parseInt(words[3])));
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    // The end of a transaction is promised first, and written to its partitions a moment later.
    static void waitForMarkers(String id) throws ExecutionException, InterruptedException {
        TransactionState state;
        do {
            state = admin.describeTransactions(List.of(id)).description(id).get().state();
        } while (state == TransactionState.PREPARE_COMMIT
                || state == TransactionState.PREPARE_ABORT
                || state == TransactionState.ONGOING);
    }

    static KafkaProducer<String, String> producer(String id) {
        return PRODUCERS.computeIfAbsent(id, name -> {
            Map<String, Object> properties = new HashMap<>();
            properties.put("bootstrap.servers", servers);
            properties.put("transactional.id", name);
            properties.put("linger.ms", "100");
            // As long as brokers allow: on a busy machine what reads beside an open one takes long.
            properties.put("transaction.timeout.ms", "900000");
            KafkaProducer<String, String> made = new KafkaProducer<>(
                    properties, new StringSerializer(), new StringSerializer());
            made.initTransactions();
            return made;
        });
    }

    static void send(KafkaProducer<String, String> producer, String[] words)
            throws ExecutionException, InterruptedException {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(words[4]); number++) {
            sent.add(producer.send(new ProducerRecord<>(
                    words[2], Integer.valueOf(words[3]), null, words[5] + "-" + number)));
        }
        producer.flush();
        for (Future<RecordMetadata> each : sent) {
            each.get();
        }
    }

    static String read(String isolation, TopicPartition partition) {
        Map<String, Object> properties = new HashMap<>();
        properties.put("bootstrap.servers", servers);
        properties.put("isolation.level", isolation);
        properties.put("auto.offset.reset", "none");
        StringBuilder lines = new StringBuilder();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                properties, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofSeconds(1))) {
                    lines.append(each.offset()).append(' ').append(each.value()).append('\n');
                }
            }
        }
        return lines.toString();
    }
}
