// Package fire tests whole fleets of real processes: three NATS servers, four workers
// and an emulator of Cloud Storage. They are killed, suspended, disconnected and
// wiped at random times, which depend on a seed. The checks use only the objects and
// the requests that the emulator received, but no state of the fleet.
package fire
