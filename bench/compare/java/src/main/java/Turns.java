import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Does a piece of work a few times unseen; then as often as each line of the standard input says, and answers with sums. */
final class Turns {
    interface Work {
        long[] run() throws IOException;
    }

    private Turns() {
    }

    static void take(Work work, int warmUps) throws IOException {
        for (int left = warmUps; left > 0; left--) {
            work.run();
        }
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            long[] sums = null;
            for (int left = Integer.parseInt(line); left > 0; left--) {
                sums = work.run();
            }
            System.out.println(Arrays.stream(sums).mapToObj(Long::toString).collect(Collectors.joining(" ")));
        }
    }
}
