// Package exit has what the two commands report when they fail: the exit codes, the kinds of
// errors, and advice for the user.
package exit
