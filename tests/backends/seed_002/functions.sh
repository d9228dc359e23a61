# 进程管�目录和文件路径（始终定义）
PROCESS_DIR="${SCRIPT_DIR}/script_process"
UNI_ID_FILE="${PROCESS_DIR}/uni_id.json"

# 更新 uni_id 状�的函数（始终定义，供��使用）
update_uni_id_status() {
    local uni_id=$1
    local state=$2
    local pid=$3
    local error_type=$4
    
    # 确�目录和文件�在
    mkdir -p "${PROCESS_DIR}"
    if [ ! -f "${UNI_ID_FILE}" ]; then
        echo "{}" > "${UNI_ID_FILE}"
    fi
    
    # 使用 Python 更新 JSON（处���边界情况）
    python3 -c "
import json, os, sys

# 安全加载 JSON
try:
    if os.path.exists('${UNI_ID_FILE}'):
        with open('${UNI_ID_FILE}', 'r') as f:
            content = f.read().strip()
            data = json.loads(content) if content else {}
            if not isinstance(data, dict):
                data = {}
    else:
        data = {}
except:
    data = {}

# 更新记录
if '${uni_id}' not in data:
    data['${uni_id}'] = {}
record = data['${uni_id}']
record['pid'] = int('${pid}') if '${pid}' else 0
record['state'] = '${state}'
record['retry_count'] = record.get('retry_count', 0)

# 设置错误类�
if '${error_type}' and '${error_type}' != 'none':
    record['error_type'] = '${error_type}'
elif 'error_type' in record and '${state}' == 'normal_exit':
    del record['error_type']

# 安全写入
with open('${UNI_ID_FILE}', 'w') as f:
    json.dump(data, f, indent=2)
"
}
