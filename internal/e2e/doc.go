// Package e2e has only tests. They run the real program in separate processes
// and over real connections. The processes are killed, lose their connections,
// get wrong replies, or run twice at the same time. docs/reliability.md
// describes the results.
package e2e
