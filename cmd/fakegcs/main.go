// Command fakegcs serves an emulator of Cloud Storage, for the tests of programs in any language. It is
// gcsup emulator as a program of its own, see docs/emulator/emulator.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gcsup/internal/emulator"
)

// The exit codes, which are those of gcsup.
const (
	exitFailed = 1
	exitUsage  = 64
	exitFaulty = 65 // check-client: the client failed a script
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "check-client" {
		return checkClient(ctx, args[1:], stdout, stderr)
	}
	flags := flag.NewFlagSet("fakegcs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "fakegcs serves an emulator of Cloud Storage. When it is ready, it prints one line, a command\n"+
			"that makes clients use it:\n\n  export STORAGE_EMULATOR_HOST=http://HOST:PORT\n\n"+
			"A browser finds buckets, objects and requests at /_fakegcs/. It ends on SIGINT, SIGTERM or SIGHUP.\n\n"+
			"fakegcs check-client finds the faults of a client, see fakegcs check-client -h.\n\nflags:\n")
		flags.PrintDefaults()
	}
	var f emulator.Flags
	f.Add(flags)
	check := flags.Bool("check", false, "exit with 0 if a server answers at --addr, for a health check")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "fakegcs: want no arguments, got %q\n", flags.Arg(0))
		return exitUsage
	}
	if *check {
		if err := answers(ctx, flags.Lookup("addr").Value.String()); err != nil {
			fmt.Fprintf(stderr, "fakegcs: %v\n", err)
			return exitFailed
		}
		return 0
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return report(f.Serve(ctx, func(name string) bool { return given[name] }, stdout, stderr), stderr)
}

// report prints an error and returns its exit code.
func report(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "fakegcs: %v\n", err)
	if _, wrong := errors.AsType[*emulator.UsageError](err); wrong {
		return exitUsage
	}
	return exitFailed
}

// checkClient runs fakegcs check-client.
func checkClient(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fakegcs check-client", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: fakegcs check-client [FLAG...] -- COMMAND [ARG...]\n\n"+
			"It finds the faults of a client, see docs/emulator/emulator.md. COMMAND uploads {file} as {object} to {bucket} at\n"+
			"{endpoint}. The exit code is 65 if it fails a script.\n\nflags:\n")
		flags.PrintDefaults()
	}
	var c emulator.Check
	c.Add(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	}
	failed, err := c.Run(ctx, flags.Args(), stdout)
	if err == nil && failed {
		return exitFaulty
	}
	return report(err, stderr)
}

// answers returns an error if no server without TLS answers at addr.
func answers(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--addr %q: want HOST:PORT", addr)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/_fakegcs/", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", resp.Status)
	}
	return nil
}
