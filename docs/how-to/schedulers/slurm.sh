#!/bin/bash
#SBATCH --job-name=upload
#SBATCH --array=0-7
#SBATCH --ntasks=1
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
#SBATCH --open-mode=append

srun gcsup cp -r --shard=auto --manifest=/share/gcsup/upload.jsonl --state-dir=/share/gcsup/state --quiet \
	/share/data/. gs://my-bucket/data
code=$?
if [ "$code" = 75 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 5 ]; then
	scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
fi
exit "$code"
