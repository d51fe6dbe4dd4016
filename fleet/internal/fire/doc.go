// Package fire tests whole fleets of real processes: three NATS servers, four workers and an
// emulator of Cloud Storage. They are killed, suspended, cut off and wiped at random times
// that a seed determines. The checks use only the objects and the requests that the emulator
// received, and nothing of the fleet.
package fire
