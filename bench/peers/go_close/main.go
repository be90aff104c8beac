// Peer: Close of Go's os.File on a pipe. See src/streams/close.rs.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

type result map[string]any

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func number(at int) int {
	n, err := strconv.Atoi(os.Args[at])
	must(err)
	return n
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// The clock that the child writes down.
func monotonic() int64 {
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		log.Fatal(errno)
	}
	return t.Nano()
}

// A goroutine that blocks in a read, which is to fail by a close.
func blocked(read *os.File, begun *atomic.Int64) chan struct{} {
	out := make(chan struct{})
	go func() {
		begun.Add(1)
		if _, err := read.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			log.Fatal("not the close: ", err)
		}
		close(out)
	}()
	return out
}

func settle(begun *atomic.Int64, count int) {
	for begun.Load() < int64(count) {
		time.Sleep(2 * time.Millisecond)
	}
	time.Sleep(time.Duration(20+count/20) * time.Millisecond)
}

type one struct {
	read, write *os.File
	out         chan struct{}
}

func open(begun *atomic.Int64) one {
	read, write, err := os.Pipe()
	must(err)
	return one{read, write, blocked(read, begun)}
}

func others(count, samples int) result {
	var begun atomic.Int64
	all := make([]one, count)
	for i := range all {
		all[i] = open(&begun)
	}
	settle(&begun, count)
	closes := make([]float64, samples)
	for sample := range closes {
		place := sample % 10 * (count / 10)
		old := all[place]
		started := time.Now()
		err := old.read.Close()
		closes[sample] = us(time.Since(started))
		must(err)
		<-old.out
		old.write.Close()
		all[place] = open(&begun)
		time.Sleep(2 * time.Millisecond)
	}
	return result{"close_us": closes, "count": count}
}

func waiters(count, samples int) result {
	closes, lasts := make([]float64, samples), make([]float64, samples)
	for sample := range closes {
		var begun atomic.Int64
		read, write, err := os.Pipe()
		must(err)
		outs := make([]chan struct{}, count)
		for i := range outs {
			outs[i] = blocked(read, &begun)
		}
		settle(&begun, count)
		started := time.Now()
		err = read.Close()
		closes[sample] = us(time.Since(started))
		must(err)
		for _, out := range outs {
			<-out
		}
		lasts[sample] = us(time.Since(started))
		write.Close()
	}
	return result{"close_us": closes, "last_us": lasts, "count": count}
}

func epipe(samples int, argv []string) result {
	late := make([]float64, samples)
	for sample := range late {
		read, write, err := os.Pipe()
		must(err)
		child := exec.Command(argv[0], argv[1:]...)
		child.Stdout = write
		must(child.Start())
		write.Close()
		_, err = io.ReadFull(read, make([]byte, 2))
		must(err)
		var begun atomic.Int64
		out := blocked(read, &begun)
		settle(&begun, 1)
		closed := monotonic()
		must(read.Close())
		<-out
		must(child.Wait())
		note, err := os.ReadFile(argv[1])
		must(err)
		late[sample] = max(0, float64(int64(binary.LittleEndian.Uint64(note))-closed)/1e3)
	}
	return result{"epipe_us": late, "count": samples}
}

func main() {
	var limit syscall.Rlimit
	must(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	var found result
	switch os.Args[1] {
	case "others":
		found = others(number(2), number(3))
	case "waiters":
		found = waiters(number(2), number(3))
	case "epipe":
		found = epipe(number(2), os.Args[3:])
	default:
		log.Fatal("no case ", os.Args[1])
	}
	line, err := json.Marshal(found)
	must(err)
	fmt.Println(string(line))
}
