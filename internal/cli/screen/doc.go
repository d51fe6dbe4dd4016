// Package screen shows a run on a terminal: messages, and below them a frame with the active files, the rate
// and the totals. Without a terminal, the progress is a line now and then.
//
// A Display is the state of the run, which events update. A Console prints. ShowFrames and ShowLines draw
// the Display on the Console until they are stopped.
package screen
