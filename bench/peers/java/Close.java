// Peer: close of Java's java.nio.channels.Pipe. See src/streams/close.rs.
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.Pipe;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

public final class Close {
    private record One(Pipe pipe, Thread reader) {}

    private static final AtomicInteger BEGUN = new AtomicInteger();

    /** A thread that blocks in a read, which is to fail by a close. */
    private static Thread blocked(Pipe pipe) {
        Runnable read = () -> {
            BEGUN.incrementAndGet();
            try {
                int n = pipe.source().read(ByteBuffer.allocate(1));
                fail("no close: " + n);
            } catch (ClosedChannelException closed) {
                // Also what it throws when another thread closes: that is one.
            } catch (Exception other) {
                fail("not the close: " + other);
            }
        };
        Thread thread = new Thread(null, read, "reader", 64 << 10);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void fail(String why) {
        System.err.println(why);
        Runtime.getRuntime().halt(1);
    }

    private static void settle(int count) throws InterruptedException {
        while (BEGUN.get() < count) Thread.sleep(2);
        Thread.sleep(20 + count / 20);
    }

    private static One open() throws Exception {
        Pipe pipe = Pipe.open();
        return new One(pipe, blocked(pipe));
    }

    private static void others(int count, int samples) throws Exception {
        List<One> all = new ArrayList<>();
        for (int i = 0; i < count; i++) all.add(open());
        settle(count);
        double[] closes = new double[samples];
        for (int sample = 0; sample < samples; sample++) {
            int place = sample % 10 * (count / 10);
            One old = all.get(place);
            long started = System.nanoTime();
            old.pipe.source().close();
            closes[sample] = (System.nanoTime() - started) / 1e3;
            old.reader.join();
            old.pipe.sink().close();
            all.set(place, open());
            Thread.sleep(2);
        }
        print("{\"close_us\": " + Arrays.toString(closes) + ", \"count\": " + count + "}");
    }

    private static void waiters(int count, int samples) throws Exception {
        double[] closes = new double[samples], lasts = new double[samples];
        for (int sample = 0; sample < samples; sample++) {
            BEGUN.set(0);
            Pipe pipe = Pipe.open();
            List<Thread> readers = new ArrayList<>();
            for (int i = 0; i < count; i++) readers.add(blocked(pipe));
            settle(count);
            long started = System.nanoTime();
            pipe.source().close();
            closes[sample] = (System.nanoTime() - started) / 1e3;
            for (Thread reader : readers) reader.join();
            lasts[sample] = (System.nanoTime() - started) / 1e3;
            pipe.sink().close();
        }
        print("{\"close_us\": " + Arrays.toString(closes) + ", \"last_us\": " + Arrays.toString(lasts)
                + ", \"count\": " + count + "}");
    }

    private static void print(String line) {
        System.out.println(line);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] words) throws Exception {
        int count = Integer.parseInt(words[1]), samples = Integer.parseInt(words[2]);
        switch (words[0]) {
            case "others" -> others(count, samples);
            case "waiters" -> waiters(count, samples);
            default -> fail("no case " + words[0]);
        }
    }
}
