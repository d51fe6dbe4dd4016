package benchrun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Client is the process of a way. An interrupt of the benchmark kills it.
type Client struct {
	Ended chan struct{} // closed when the process has ended; other fields are valid then

	cmd    *exec.Cmd
	output bytes.Buffer
	wall   time.Duration
	err    error
}

// StartClient starts the process of a run.
func (s *Suite) StartClient(r *Run) (*Client, error) {
	if err := context.Cause(s.ctx); err != nil {
		return nil, err
	}
	c := &Client{cmd: r.Way.Command(r.Server.Endpoint, r.Number), Ended: make(chan struct{})}
	c.cmd.Env = append(s.environ(r.Server), c.cmd.Env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	ownGroup(c.cmd)
	begin := c.cmd.Start
	if link := r.Server.Link; link != nil {
		begin = func() error { return link.StartClient(c.cmd, r.Server.hosts) }
	}
	start := time.Now()
	if err := begin(); err != nil {
		return nil, err
	}
	end := context.AfterFunc(s.ctx, func() { killGroup(c.cmd) })
	go func() {
		c.err = c.cmd.Wait()
		c.wall = time.Since(start)
		end()
		close(c.Ended)
	}()
	return c, nil
}

// Until waits until done returns true. It returns an error if the process ends before that.
func (c *Client) Until(what string, done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-c.Ended:
			return fmt.Errorf("ended before %s: %w", what, c.Failure())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the process and its children, if it runs.
func (c *Client) Kill() {
	select {
	case <-c.Ended:
	default:
		killGroup(c.cmd)
		<-c.Ended
	}
}

// Output returns what the process has printed.
func (c *Client) Output() []byte { return c.output.Bytes() }

// ExitCode returns the exit code of the process.
func (c *Client) ExitCode() int { return c.cmd.ProcessState.ExitCode() }

// Failure returns why the process failed, if it did.
func (c *Client) Failure() error {
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", c.err, c.output.Bytes())
}

// environ returns the environment of a client of a server: gcsup, gcloud, curl, or any
// program in Go.
func (s *Suite) environ(p *Process) []string {
	return append(os.Environ(), "STORAGE_EMULATOR_HOST="+p.Endpoint, "XDG_STATE_HOME="+s.Dir, "NO_PROXY=*",
		"SSL_CERT_FILE="+p.authority, "CURL_CA_BUNDLE="+p.authority,
		"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE="+p.Endpoint+"/", "CLOUDSDK_CONFIG="+filepath.Join(s.Dir, "gcloud"), "CLOUDSDK_CORE_PROJECT=p",
		"CLOUDSDK_AUTH_DISABLE_CREDENTIALS=1", "CLOUDSDK_CORE_DISABLE_PROMPTS=1", "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=1",
		"CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=1")
}
