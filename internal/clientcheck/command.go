package clientcheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Command returns the client that a command line is. In its arguments, {file}, {bucket}, {object},
// {dir}, {endpoint} and {ca} stand for the fields of the task. The environment makes clients use
// the server: STORAGE_EMULATOR_HOST and what others need. An exit code other than 0 is a failure.
// Command fails if there is no such program.
func Command(args []string) (Client, error) {
	if len(args) == 0 {
		return nil, errors.New("no command")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	return func(ctx context.Context, t Task) error {
		c := exec.CommandContext(ctx, path, t.expand(args[1:])...)
		c.Env = append(os.Environ(), t.environment()...)
		out := &tail{}
		c.Stdout, c.Stderr = out, out
		c.WaitDelay = 2 * time.Second // for a child that has the output open
		inGroup(c)
		err := c.Run()
		if err == nil || errors.Is(err, exec.ErrWaitDelay) && c.ProcessState.Success() {
			return nil
		}
		if text := out.String(); text != "" {
			return fmt.Errorf("%w: %s", err, text)
		}
		return err
	}, nil
}

// expand replaces the placeholders in args.
func (t Task) expand(args []string) []string {
	r := strings.NewReplacer("{file}", t.File, "{bucket}", t.Bucket, "{object}", t.Object, "{dir}", t.Dir,
		"{endpoint}", t.Endpoint, "{ca}", t.CA)
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = r.Replace(a)
	}
	return list
}

// environment returns the variables by which clients find the server, see docs/emulator/emulator.md.
func (t Task) environment() []string {
	env := []string{
		"STORAGE_EMULATOR_HOST=" + t.Endpoint,
		"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE=" + t.Endpoint + "/",
		"CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true",
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
	}
	if t.CA != "" {
		env = append(env, "SSL_CERT_FILE="+t.CA, "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE="+t.CA, "REQUESTS_CA_BUNDLE="+t.CA,
			"NODE_EXTRA_CA_CERTS="+t.CA, "CURL_CA_BUNDLE="+t.CA)
	}
	return env
}

// tailLimit is how much of the output of a command is kept.
const tailLimit = 2000

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - tailLimit; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(bytes.TrimSpace(t.b)), "")
}
