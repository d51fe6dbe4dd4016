// Package process has what the two commands know of their process: the words that run it again, its terminal,
// its signals, the directory and the key of its state, and text that is safe to print.
package process
