package spool

import (
	"math/rand/v2"

	"gcsup/internal/powerdisk"
)

// powerDisk is a directory on a disk that loses power.
type powerDisk struct{ *powerdisk.Disk }

func newPowerDisk() powerDisk { return powerDisk{powerdisk.New(nil)} }

func (d powerDisk) Create(name string) (file, error) {
	f, err := d.Disk.Create(name)
	return powerFile{f}, err
}

func (d powerDisk) Open(name string) (file, error) {
	f, err := d.Disk.Open(name)
	return powerFile{f}, err
}

func (d powerDisk) Names() ([]string, error) { return d.Disk.Names(), nil }
func (d powerDisk) Sync() error              { return d.Disk.Sync(".") }
func (d powerDisk) Close() error             { return nil }

// powerFile is a file whose Close cannot fail: its bytes are durable since the last Sync.
type powerFile struct{ *powerdisk.File }

func (powerFile) Close() error { return nil }

// images calls look with up to 32 states of the disk after a power loss now.
func (d powerDisk) images(random *rand.Rand, look func(powerDisk)) {
	d.SomeImages(32, random, func(after *powerdisk.Disk) { look(powerDisk{after}) })
}
