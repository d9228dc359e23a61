if [ ${EXIT_CODE} -ne 0 ]; then
    if grep -i "out of memory\|cuda out of memory\|oom" "${LOG_FILE}" >/dev/null 2>&1; then
        ERROR_TYPE="oom"
    elif grep -i "RuntimeError\|runtime error" "${LOG_FILE}" >/dev/null 2>&1; then
        ERROR_TYPE="runtime_error"
    else
        ERROR_TYPE="unknown"
    fi
    update_uni_id_status "${UNI_ID}" "abnormal_exit" "${PY_PID}" "${ERROR_TYPE}"
else
    update_uni_id_status "${UNI_ID}" "normal_exit" "${PY_PID}" "none"
fi
