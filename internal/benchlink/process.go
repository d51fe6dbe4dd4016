package main

import (
	"bytes"
	"fmt"
	"os/exec"

	"gcsup/internal/benchrun"
)

// temporary is the exit code of gcsup after which the same command continues.
const temporary = 75

// process is a run of gcsup.
type process struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
	err    error // valid when ended is closed
}

// start starts an upload.
func (l *link) start(s *benchrun.Suite, file string, flags []string) (*process, error) {
	p := &process{cmd: l.cp(file, "silent", flags...), ended: make(chan struct{})}
	p.cmd.Env = append(s.Environ(&benchrun.Process{Endpoint: endpoint}), p.cmd.Env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// mayContinue reports whether the process failed, and the same command continues the
// upload. The process must have ended.
func (p *process) mayContinue() bool { return p.cmd.ProcessState.ExitCode() == temporary }

// failure returns the error of a process that has ended.
func (p *process) failure() error {
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("gcsup: %w\n%s", p.err, p.output.Bytes())
}

// kill ends the process.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}
