package memnet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs/memnet"
	"gcsup/internal/require"
)

func connect(t *testing.T) (client, server net.Conn) {
	t.Helper()
	ln, dial := memnet.Listen()
	accepted := make(chan net.Conn)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	client, err := dial(context.Background(), "tcp", "anywhere:80")
	require.NoError(t, err)
	return client, <-accepted
}

type lingerer interface{ SetLinger(int) error }

func TestCloseGivesTheRestThenEOF(t *testing.T) {
	client, server := connect(t)
	if _, err := client.Write([]byte("last words")); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, client.Close())
	got, err := io.ReadAll(server)
	if string(got) != "last words" || err != nil {
		t.Errorf("read %q, %v, want the written bytes and no error", got, err)
	}
	if _, err := server.Write([]byte("x")); !errors.Is(err, memnet.ErrPipe) {
		t.Errorf("write to a closed peer: %v, want EPIPE", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after own Close: %v, want net.ErrClosed", err)
	}
}

func TestResetLosesTheRest(t *testing.T) {
	for _, test := range []struct {
		name  string
		close func(client, server net.Conn)
	}{
		{"SetLinger(0)", func(client, server net.Conn) {
			client.(lingerer).SetLinger(0)
			client.Write([]byte("lost"))
		}},
		{"unread data", func(client, server net.Conn) {
			server.Write([]byte("never read"))
			client.Write([]byte("lost"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, server := connect(t)
			test.close(client, server)
			client.Close()
			if n, err := server.Read(make([]byte, 9)); n != 0 || !errors.Is(err, memnet.ErrReset) {
				t.Errorf("Read = %d, %v, want 0, ECONNRESET", n, err)
			}
			if _, err := server.Write([]byte("x")); !errors.Is(err, memnet.ErrReset) {
				t.Errorf("Write: %v, want ECONNRESET", err)
			}
		})
	}
}

func TestCloseWriteKeepsTheOtherDirection(t *testing.T) {
	client, server := connect(t)
	require.NoError(t, client.(interface{ CloseWrite() error }).CloseWrite())
	if _, err := server.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read = %v, want io.EOF", err)
	}
	server.Write([]byte("still here"))
	server.Close()
	if got, err := io.ReadAll(client); string(got) != "still here" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestReadsAndWritesOfAnySize checks that all bytes arrive in their order, however many each call takes.
func TestReadsAndWritesOfAnySize(t *testing.T) {
	sent := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(sent)
	for _, sizes := range [][2]int{{1 << 20, 1000}, {1000, 1 << 20}, {5000, 4095}, {8192, 12289}} {
		client, server := connect(t)
		go func() {
			for p := range slices.Chunk(sent, sizes[0]) {
				client.Write(p)
			}
			client.Close()
		}()
		var got []byte
		for p := make([]byte, sizes[1]); ; {
			n, err := server.Read(p)
			got = append(got, p[:n]...)
			if err != nil {
				break
			}
		}
		if !bytes.Equal(got, sent) {
			t.Errorf("writes of %d bytes and reads of %d: %d bytes arrived, or other ones", sizes[0], sizes[1], len(got))
		}
	}
}

func TestBlockedWriteEndsWithThePeer(t *testing.T) {
	client, server := connect(t)
	done := make(chan error)
	go func() {
		_, err := client.Write(make([]byte, 1<<20)) // more than the buffer
		done <- err
	}()
	io.ReadFull(server, make([]byte, 1000))
	server.Close()
	if err := <-done; !errors.Is(err, memnet.ErrReset) && !errors.Is(err, memnet.ErrPipe) {
		t.Errorf("Write = %v, want ECONNRESET or EPIPE", err)
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := connect(t)
		defer client.Close()
		defer server.Close()
		start := time.Now()
		client.SetReadDeadline(start.Add(3 * time.Second))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read = %v, want os.ErrDeadlineExceeded", err)
		}
		client.SetWriteDeadline(start.Add(5 * time.Second))
		if n, err := client.Write(make([]byte, 1<<20)); n != 64<<10 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Write = %d, %v, want the buffer's 65536 and os.ErrDeadlineExceeded", n, err)
		}
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("%v passed, want 5s", d)
		}
		client.SetReadDeadline(time.Now().Add(time.Second)) // replaced before it passes
		client.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() { server.Write([]byte("late")) })
		if n, err := client.Read(make([]byte, 9)); n != 4 || err != nil {
			t.Errorf("Read = %d, %v after the deadline was taken away", n, err)
		}
		client.SetReadDeadline(time.Now().Add(-1))
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read = %v with a deadline in the past", err)
		}
	})
}

func TestDialEnds(t *testing.T) {
	ln, dial := memnet.Listen()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := dial(ctx, "", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("dial = %v, want context.Canceled", err)
	}
	ln.Close()
	ln.Close()
	if _, err := dial(context.Background(), "", ""); !errors.Is(err, memnet.ErrRefused) {
		t.Errorf("dial = %v, want ECONNREFUSED", err)
	}
	if _, err := ln.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept = %v, want net.ErrClosed", err)
	}
}

// The reason for the package: an HTTP exchange that waits an hour, at once.
func TestHTTPInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln, dial := memnet.Listen()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour)
			w.Write(body)
		})}
		go srv.Serve(ln)
		tr := &http.Transport{DialContext: dial}
		body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB, 16 buffers full
		start := time.Now()
		resp, err := (&http.Client{Transport: tr}).Post("http://pipe/", "", bytes.NewReader(body))
		require.NoError(t, err)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !bytes.Equal(got, body) || err != nil {
			t.Errorf("echo gave %d bytes, %v", len(got), err)
		}
		if d := time.Since(start); d != time.Hour {
			t.Errorf("%v passed, want 1h", d)
		}
		tr.CloseIdleConnections()
		srv.Close()
	})
}

func Example() {
	ln, dial := memnet.Listen()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello from ", r.Host)
	})}
	go srv.Serve(ln)
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	resp, err := client.Get("http://anywhere/")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	io.Copy(os.Stdout, resp.Body)
	// Output: hello from anywhere
}
