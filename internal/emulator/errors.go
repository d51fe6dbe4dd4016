package emulator

import "fmt"

// UsageError reports flags that are wrong or do not fit together.
type UsageError struct{ err error }

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// FileError reports a file or directory of a flag that cannot be read.
type FileError struct{ err error }

func (e *FileError) Error() string { return e.err.Error() }
func (e *FileError) Unwrap() error { return e.err }
