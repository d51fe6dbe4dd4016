package exit

import "fmt"

// The exit codes. They are those of sysexits.h, if it has one with that meaning.
const (
	OK          = 0
	Usage       = 64
	Data        = 65
	NoInput     = 66
	Unavailable = 69
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
