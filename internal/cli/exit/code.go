package exit

import "fmt"

// The exit codes. They are those of sysexits.h, if it has one with that meaning.
const (
	OK          = 0
	Usage       = 64
	Data        = 65
	NoInput     = 66
	Unavailable = 69
	Command     = 70
	Exists      = 73
	IO          = 74
	Temporary   = 75
	Permission  = 77
	Config      = 78
	Signal      = 130
)

// Printed is the error of a command that has already printed what went wrong. Its
// value is the exit code.
type Printed int

func (p Printed) Error() string { return fmt.Sprintf("exit code %d", int(p)) }

// Meaning describes an exit code.
type Meaning struct {
	Code int
	Text string
}

// Meanings describes all exit codes, in their order.
var Meanings = []Meaning{
	{OK, "done, or skipped"},
	{Usage, "usage: a flag or a name is invalid, or the service rejects the request as invalid"},
	{Data, "the source changed, a checksum does not match, the server's answers contradict each other, or a saved upload is damaged or incomplete"},
	{NoInput, "the source does not exist or cannot be opened, or standard input is closed"},
	{Unavailable, "no such bucket or service; the session was lost more than three times or canceled; a daily quota is used up"},
	{Command, "the command after -- failed, or could not be started; no object was made"},
	{Exists, "a precondition failed"},
	{IO, "local I/O: the disk is full, a read failed"},
	{Temporary, "temporary: run again to resume"},
	{Permission, "credentials or permission"},
	{Config, "configuration; a saved upload that others can read, or that a newer version saved"},
	{Signal, "a second SIGINT, SIGTERM or SIGHUP: the command did not wait"},
}
