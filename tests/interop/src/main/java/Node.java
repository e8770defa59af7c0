import java.io.IOException;

/** Kafka's own main, which also ends when its standard input does: it does not outlive whoever started it. */
public final class Node {
    public static void main(String[] args) {
        Thread watch = new Thread(Node::endWithStandardInput, "standard-input");
        watch.setDaemon(true);
        watch.start();
        kafka.Kafka.main(args);
    }

    private static void endWithStandardInput() {
        try {
            while (System.in.read() >= 0) {
                // Nothing is said to it: all that matters is the end.
            }
        } catch (IOException broken) {
            // As good as the end.
        }
        System.exit(0);
    }
}
