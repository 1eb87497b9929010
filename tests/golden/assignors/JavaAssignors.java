import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/** A line "assignor TAB topic:count,… TAB member[@instance]=topic+…;…" in, the line and what each reads out. */
public class JavaAssignors {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t");
            Map<String, Integer> counts = new HashMap<>();
            for (String topic : parts[1].split(",")) {
                counts.put(topic.split(":")[0], Integer.parseInt(topic.split(":")[1]));
            }
            Map<String, Subscription> members = new HashMap<>();
            for (String member : parts[2].split(";")) {
                String[] names = member.split("=")[0].split("@");
                Subscription subscription = new Subscription(List.of(member.split("=")[1].split("\\+")));
                subscription.setGroupInstanceId(names.length > 1 ? Optional.of(names[1]) : Optional.empty());
                members.put(names[0], subscription);
            }
            AbstractPartitionAssignor assignor =
                parts[0].equals("range") ? new RangeAssignor() : new RoundRobinAssignor();
            Map<String, List<TopicPartition>> assigned = new TreeMap<>(assignor.assign(counts, members));
            List<String> shown = new ArrayList<>();
            assigned.forEach((member, partitions) -> shown.add(member + "=" + partitions.stream()
                .map(TopicPartition::toString).sorted().collect(Collectors.joining("+"))));
            System.out.println(line + "\t" + String.join(";", shown));
        }
    }
}
