// Peer: Go's os/exec with a bytes.Buffer a stream.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"
)

const block = 4096

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return n
}

func verify(data []byte, size int, first uint64) {
	if len(data) != size {
		log.Fatalf("wrong length: %d, not %d", len(data), size)
	}
	for at := 0; at < size; at += block {
		if binary.LittleEndian.Uint64(data[at:]) != first+uint64(at/block) {
			log.Fatal("wrong bytes")
		}
	}
}

func peakRSS() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		log.Fatal(err)
	}
	return string(regexp.MustCompile(`VmHWM:\s+(\d+)`).FindSubmatch(status)[1])
}

func main() {
	streams, size := number(os.Args[2]), number(os.Args[3])
	var out, err bytes.Buffer
	started := time.Now()
	child := exec.Command(os.Args[1], os.Args[2:]...)
	child.Stdout, child.Stderr = &out, &err
	if failure := child.Run(); failure != nil {
		log.Fatal(failure)
	}
	seconds := time.Since(started).Seconds()
	peak := peakRSS()
	verify(out.Bytes(), size, 0)
	if streams == 2 {
		verify(err.Bytes(), size, 1<<32)
	} else {
		verify(err.Bytes(), 0, 0)
	}
	fmt.Printf("{\"seconds\": %f, \"peak_rss_kb\": %s, \"bytes_out\": %d, \"bytes_err\": %d}\n", seconds, peak, out.Len(), err.Len())
}
