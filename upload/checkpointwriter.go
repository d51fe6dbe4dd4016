package upload

import "time"

// checkpointWriter saves the Token in a goroutine when wake is called.
type checkpointWriter struct {
	due  chan struct{} // holds at most one
	done chan struct{}
}

func newCheckpointWriter(save func()) *checkpointWriter {
	w := &checkpointWriter{due: make(chan struct{}, 1), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for range w.due {
			save()
		}
	}()
	return w
}

// wake makes the writer save the newest state. It does not block.
func (w *checkpointWriter) wake() {
	select {
	case w.due <- struct{}{}:
	default:
	}
}

// stop waits for the save under way.
func (w *checkpointWriter) stop() {
	close(w.due)
	<-w.done
}

// checkpointTimeout bounds the save of a checkpoint, because the next save waits for it.
const checkpointTimeout = 10 * time.Second
