package main

import (
	"errors"
	"testing"
)

// TestReadAddressWhileItIsWritten reads the address of a server while servers start and end. It is whole, or there is
// none.
func TestReadAddressWhileItIsWritten(t *testing.T) {
	t.Parallel()
	dir, written := t.TempDir(), make(chan struct{})
	go func() {
		defer close(written)
		for range 300 {
			remove, err := writeAddress(dir, address{URL: "nats://127.0.0.1:1", Token: newToken()})
			if err != nil {
				t.Error(err)
			}
			remove()
		}
	}()
	for {
		select {
		case <-written:
			return
		default:
		}
		if a, err := readAddress(dir); err != nil && !errors.Is(err, errLocked) || err == nil && a.Token == "" {
			t.Errorf("address %+v, %v", a, err)
			<-written
			return
		}
	}
}
