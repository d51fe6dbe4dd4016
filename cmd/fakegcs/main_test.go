package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// The program prints the address of its server, answers there, and ends with its context.
func TestRun(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, stdout := io.Pipe()
	code := make(chan int)
	go func() {
		c := run(ctx, []string{"--addr", "127.0.0.1:0", "--create-buckets"}, stdout, io.Discard)
		stdout.Close()
		code <- c
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "export STORAGE_EMULATOR_HOST=")
	if err != nil || !ok {
		t.Fatalf("the first line is %q, %v", line, err)
	}
	if resp, err := http.Get(url + "/_fakegcs/"); err != nil || resp.StatusCode != 200 {
		t.Errorf("%v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	addr := strings.TrimPrefix(url, "http://")
	if c := run(t.Context(), []string{"--check", "--addr", addr}, io.Discard, io.Discard); c != 0 {
		t.Errorf("--check of a server that runs: exit code %d", c)
	}
	stop()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
	if c := run(t.Context(), []string{"--check", "--addr", addr}, io.Discard, io.Discard); c != 1 {
		t.Errorf("--check of a server that has ended: exit code %d", c)
	}
}

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--help", 0, "STORAGE_EMULATOR_HOST"},
		{"--nonsense", 64, "nonsense"},
		{"extra", 64, `no arguments, got "extra"`},
		{"--rate fast", 64, "want a size such as 8MiB"},
		{"--http2", 64, "--http2 needs --tls"},
		{"--addr nowhere", 64, "want HOST:PORT"},
		{"--faults /none", 1, "no such file"},
	} {
		var stderr strings.Builder
		if c := run(t.Context(), strings.Fields(test.args), io.Discard, &stderr); c != test.code || !strings.Contains(stderr.String(), test.want) {
			t.Errorf("%s: exit code %d, %s", test.args, c, stderr.String())
		}
	}
}

// check-client runs a command, and reports that it uploaded nothing.
func TestCheckClient(t *testing.T) {
	var out strings.Builder
	nothing := []string{"check-client", "--script", "plain", "--size", "256KiB", "--", os.Args[0], "-test.run=^$"}
	if c := run(t.Context(), nothing, &out, io.Discard); c != 65 || !strings.Contains(out.String(), "object, absent: ") {
		t.Errorf("exit code %d: %s", c, out.String())
	}
	if c := run(t.Context(), []string{"check-client", "--list"}, io.Discard, io.Discard); c != 0 {
		t.Errorf("--list: exit code %d", c)
	}
	if c := run(t.Context(), []string{"check-client"}, io.Discard, io.Discard); c != 64 {
		t.Errorf("no command: exit code %d", c)
	}
}
