package spool

import "errors"

var (
	// ErrNoEnd means that the end of the input was not recorded. The object can never be made.
	ErrNoEnd = errors.New("the input did not end")

	// ErrDamaged means that the files are not those that were written.
	ErrDamaged = errors.New("the spool is damaged")
)
