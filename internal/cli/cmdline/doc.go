// Package cmdline has what the two commands share of their command lines: flags, their values and
// environment variables, the help command, and the errors for wrong command lines.
package cmdline
