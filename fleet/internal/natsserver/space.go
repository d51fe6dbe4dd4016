package natsserver

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
)

const (
	// spare is the number of bytes that must be free before the server is started again.
	spare = 4 << 20

	// lookEvery is the time between two looks for space.
	lookEvery = time.Second
)

// keep starts the server again when its disk was full and has space again, until ctx is done.
func (s *Server) keep(ctx context.Context) {
	defer close(s.ended)
	for {
		select {
		case err := <-s.full:
			s.opts.Report(slog.LevelError, fmt.Sprintf("the queue waits, because the disk of %s is full: free %d MiB or more: %v", s.opts.Dir, spare>>20, err))
		case <-ctx.Done():
			return
		}
		for !s.hasSpace() {
			select {
			case <-time.After(lookEvery):
			case <-ctx.Done():
				return
			}
		}
		switch err := s.restart(ctx); {
		case err == nil:
			s.opts.Report(slog.LevelWarn, fmt.Sprintf("the queue continues: the disk of %s has space again", s.opts.Dir))
		case isFull(err) || len(s.full) > 0:
			s.noteFull(err)
		default:
			s.failed <- fmt.Errorf("%w: %w", ErrStopped, err)
			return
		}
	}
}

// noteFull wakes keep.
func (s *Server) noteFull(err error) {
	select {
	case s.full <- err:
	default: // it knows
	}
}

// hasSpace reports whether spare bytes can be written. The server will report any other error.
func (s *Server) hasSpace() bool {
	path := filepath.Join(s.opts.Dir, "space")
	defer os.Remove(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return !isFull(err)
	}
	defer f.Close()
	for written := 0; written < spare && err == nil; written += 1 << 20 {
		_, err = f.Write(make([]byte, 1<<20))
	}
	if err == nil {
		err = f.Sync()
	}
	return !isFull(err)
}

// restart ends the server and starts it again with the same port.
func (s *Server) restart(ctx context.Context) error {
	s.current().Shutdown()
	s.current().WaitForShutdown()
	for len(s.full) > 0 {
		<-s.full // of the server that has ended
	}
	n, err := s.start()
	if err != nil {
		for len(s.full) > 0 {
			<-s.full // keep gets err
		}
		return err
	}
	s.mu.Lock()
	s.server = n
	s.mu.Unlock()
	nc, err := s.Connect()
	if err != nil {
		return err
	}
	defer nc.Close()
	return s.opts.Restarted(ctx, nc)
}
