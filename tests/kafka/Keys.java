import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Utils;

/** Kafka's own partition of many keys in one call from Python, timed without making the keys. */
public class Keys {
    private long nanos;

    /** The sum of the partitions of all keys, given line by line. */
    public long partitions(String lines, int count) {
        String[] texts = lines.split("\n");
        byte[][] keys = new byte[texts.length][];
        for (int i = 0; i < texts.length; i++) {
            keys[i] = texts[i].getBytes(StandardCharsets.UTF_8);
        }
        long sum = 0;
        long start = cpuNanos();
        for (int i = 0; i < keys.length; i++) {
            sum += Utils.toPositive(Utils.murmur2(keys[i])) % count;
        }
        nanos = cpuNanos() - start;
        return sum;
    }

    private static long cpuNanos() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /** Processor time of the last call's loop. */
    public long nanos() {
        return nanos;
    }
}
