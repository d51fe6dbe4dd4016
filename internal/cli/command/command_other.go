//go:build !unix

package command

import (
	"context"
	"time"

	"gcsup/internal/cli/exit"
)

// Command cannot be made on this system.
type Command struct{}

// New returns an error.
func New(Options) (*Command, error) {
	return nil, exit.Usagef("a command after -- cannot be run on this system, because its children could not be ended: write its output to a file, and upload the file")
}

func (*Command) Read([]byte) (int, error)        { panic("unreachable") }
func (*Command) SetReadDeadline(time.Time) error { panic("unreachable") }
func (*Command) Confirm(context.Context) error   { panic("unreachable") }
func (*Command) Stop()                           { panic("unreachable") }
func (*Command) Close()                          { panic("unreachable") }
