// Reads keys as hexadecimal lines, writes what Kafka's own Java client says about each:
// key, murmur2 as a signed number, and the partition of each number of partitions given.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.Utils;

public class JavaPartitions {
    public static void main(String[] counts) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] key = HexFormat.of().parseHex(line);
            StringBuilder out = new StringBuilder(line + "," + Utils.murmur2(key));
            for (String count : counts) {
                int partition = BuiltInPartitioner.partitionForKey(key, Integer.parseInt(count));
                out.append(",").append(partition);
            }
            System.out.println(out);
        }
    }
}
